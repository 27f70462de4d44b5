// How likely differences of functions' times are where nothing changed by more than is tolerated.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compare/series.h"

namespace culprit::compare {

/// p of a difference that large, to either side, were the true one no larger than `tolerated`. 0 of one without any
/// error, 1 of one that is no larger.
double chance_beyond(const MeanDifference& difference, double tolerated);

/// Of mean logarithms of positive values. Recordings of the same differ by `between`, or by what they drift inside
/// beyond chance, if that is more. nullopt: fewer than kFewCycles independent values on a side.
std::optional<MeanDifference> difference_of_logs(const std::array<std::vector<double>, 2>& values, double between);

}  // namespace culprit::compare
