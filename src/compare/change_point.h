// From which step on a run was another one: a clock that fell in the middle of a run, a neighbour that came. Found by
// time alone; what is before and behind is compared then as two runs are, which decides whether anything changed.
#pragma once

#include <cstdint>
#include <optional>

#include "model/cycles.h"

namespace culprit::compare {

/// The number of the first cycle of the part behind it: the place at which the common difference of the mean logarithms
/// of step times, inside the classes of like work that lie on both sides, is surest (largest |t|, with the steps of a
/// class weighted by what they tell, and as many independent ones as their autocorrelation leaves, see series.h), when
/// that is kSureChange or more, the times differ by kLeastChange or more, and by most of that between the steps next to
/// the place. nullopt: there is none, or there are too few steps. Asked of all steps together, and of those of each
/// phase. O(n).
std::optional<std::uint32_t> change_point(const model::Cycles& cycles);
inline constexpr double kSureChange = 6;      // of standard errors: the largest of some hundred places
inline constexpr double kLeastChange = 0.05;  // relative

}  // namespace culprit::compare
