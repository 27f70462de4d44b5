// Work that moved between the functions of one parent: who took it over has not become slower.
#pragma once

#include <map>
#include <vector>

#include "core/string_table.h"
#include "model/comparison.h"

namespace culprit::compare {

/// Of what some functions of a parent gained, this share may remain that no other of them lost.
inline constexpr double kLeftOver = 0.25;
/// By how much the calls of functions on both sides must have changed to tell of work that moved.
inline constexpr double kMoreCalls = 0.05;

/// Sets moved_inside of the findings that changed, are new or gone where those with one parent (in one phase, process
/// and device; on a host what the parent itself did among them) together do not:
///   - what some gained differs from what the others lost by no more than kLeftOver of the smaller of the two, and
///     what remains of all that moved on a device stays within `may_remain` (ns per cycle, by phase);
///   - the calls tell so too: most was gained by those that are new or called more often, most lost by those that are
///     gone or called less often, or by the parent itself: two functions that are called as before and whose
///     times moved against each other changed both.
/// What lies in a function that one side alone has counts for the parent of that. The innermost parents come first,
/// and whoever moved inside of one gives and takes nothing outside of it. Whoever waits gives and takes nothing. A
/// function whose parent differs between the sides, or is not known, is marked only as that parent itself. On a device
/// those of whom no parent is known (of graphs none is) are one domain with the others whose names differ in numbers
/// alone: their match_key() stands for the parent then. O(findings log findings).
void mark_cost_shifts(std::vector<model::FunctionFinding>& findings, const std::map<model::Phase, double>& may_remain,
                      StringTable& texts);

}  // namespace culprit::compare
