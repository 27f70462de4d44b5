// What must be equal for two runs to be compared at all, beside their cycles: other hardware or another number of ranks
// is other work, however alike the names of the functions are.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Facts that both sides know and that differ, those that block first. GPU work on one side only, other device models
/// and another world size block; other ranks of the same world do not, nor another
/// program, preset, set of collectors or of captured functions, nor other options of a profiler, which is said first.
std::vector<model::Difference> differences_of(const model::RunFacts& base, const model::RunFacts& candidate);

/// What the profiler of each side recorded and that of the other did not: options, kinds of functions of the host. None
/// of recordings of Culprit, which cost little.
std::array<std::vector<std::string>, 2> profiled_alone(const model::RunFacts& base, const model::RunFacts& candidate);

/// Kinds of functions of the host that were captured on one side only, which tells how it was recorded and not what
/// ran; and "between", the time between functions, if there are any.
std::set<std::string, std::less<>> captured_on_one_side(const model::RunFacts& base, const model::RunFacts& candidate);

}  // namespace culprit::compare
