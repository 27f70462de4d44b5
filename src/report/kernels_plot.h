// How much of the time runs at which utilisation: as bars of characters for a terminal, and as an SVG that stands
// alone.
#pragma once

#include <string>

#include "model/kernel_report.h"

namespace culprit::report {

/// One block of bars per measurement; empty when nothing was measured.
std::string use_plot(const model::UseReport& report);

/// One chart per measurement side by side, with axes, the thresholds, and the numbers as titles of the bars.
std::string use_svg(const model::UseReport& report);

}  // namespace culprit::report
