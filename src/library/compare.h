// Comparing runs, for the public call and for `culprit diff`.
#pragma once

#include <culprit/compare.h>

#include <functional>
#include <vector>

#include "model/comparison.h"

namespace culprit::library {

/// Loads an earlier recording of the same when its turn comes: of each only its steps are kept.
using Earlier = std::function<Result<std::vector<Run>>()>;

/// Errors: as compare_runs() of <culprit/compare.h>, and those of `earlier`. Runs that must not be compared are not
/// measured; a run is given back to memory when it has been.
Result<model::RunComparison> compare(std::vector<Run> baseline, std::vector<Run> candidate,
                                     const CompareOptions& options, const std::vector<Earlier>& earlier = {});

}  // namespace culprit::library
