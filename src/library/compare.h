// Comparing runs, for the public call and for `culprit diff`.
#pragma once

#include <culprit/compare.h>

#include <vector>

#include "model/comparison.h"

namespace culprit::library {

/// Errors: as compare_runs() of <culprit/compare.h>. Runs that must not be compared are not measured; a run is given
/// back to memory when it has been.
Result<model::RunComparison> compare(std::vector<Run> baseline, std::vector<Run> candidate,
                                     const CompareOptions& options);

}  // namespace culprit::library
