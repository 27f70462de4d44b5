// Work that moved between the functions of one parent: who took it over has not become slower.
#pragma once

#include <vector>

#include "core/string_table.h"
#include "model/comparison.h"

namespace culprit::compare {

/// Of what some functions of a parent gained, this share may remain that no other of them lost.
inline constexpr double kLeftOver = 0.25;

/// Sets moved_inside of the findings that changed, are new or gone where those with one parent (in one phase, process
/// and device; on a host the parent itself among them) together do not: what some gained differs from what the others
/// lost by no more than kLeftOver of the smaller of the two. What lies in a
/// function that one side alone has counts for the parent of that. Whoever waits gives and takes nothing. A function
/// whose parent differs between the sides, or is not known, is never marked. O(findings log findings).
void mark_cost_shifts(std::vector<model::FunctionFinding>& findings, const StringTable& texts);

}  // namespace culprit::compare
