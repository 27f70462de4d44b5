// How often a step calls a function: the one number of it that no neighbour and no clock moves. Where the time of a
// step may be the machine's doing, another number of calls in steps of like work is the program's.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "compare/like_work.h"
#include "compare/series.h"
#include "core/string_table.h"
#include "model/comparison.h"

namespace culprit::compare {

/// Steps of like work that each side must have.
inline constexpr std::size_t kFewestToCount = 5;
/// Of the steps of a kind so many must call a function as often as most do.
inline constexpr double kNearlyAllSteps = 0.9;

/// How often a step of each side calls a function: what nine of ten steps of each kind of work do, the mean over the
/// kinds, each weighted by its shares of the sides. `counts` are of the steps that call it, the others call it 0 times.
/// nullopt: it varies among steps of like work, or between the kinds in direction, or too few steps tell.
/// O(counts + steps).
std::optional<std::array<double, 2>> steady_calls(const std::array<std::vector<CycleValue>, 2>& counts,
                                                  const LikeWork& work);

/// What other numbers of calls make of a step, of each waterfall's device or thread; only where some changed. Time is
/// that of the waterfall's lines, so that what runs beside the steps is no part of it: of what is called more often the
/// candidate's own of these calls, of what is called less often the baseline's, times what a call takes longer on the
/// candidate. Functions of one name in several processes count with their mean. Needs steady_calls of the findings.
/// O(findings + lines).
std::vector<model::CallsChange> calls_changes(std::span<const model::FunctionFinding> findings,
                                              std::span<const model::Waterfall> waterfalls, const StringTable& texts);

}  // namespace culprit::compare
