// The cause of a difference between two runs, named from what was compared; or none.
#pragma once

#include <vector>

#include "model/comparison.h"
#include "model/verdict.h"

namespace culprit::diagnose {

/// What all rules say of both sides, sorted out: what explains the same time twice shares it, largest impact first,
/// those of the slower side before those of the other one. Where the steps are called slower and no rule knows why,
/// "unknown" with where the time went. Runs that are not compared get none.
std::vector<model::Verdict> diagnose(const model::RunComparison& comparison);

}  // namespace culprit::diagnose
