// Times as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

#include "core/units.h"

namespace culprit::cli {

/// "10s", "500ms", "1.5m", "2h", "100us", "5ns". nullopt: no unit, no number, or more than 290 years.
std::optional<Ns> parse_duration(std::string_view text);

}  // namespace culprit::cli
