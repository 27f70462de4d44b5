// Comparing runs, for the public call and for `culprit diff`.
#pragma once

#include <culprit/compare.h>

#include <array>
#include <functional>
#include <vector>

#include "model/comparison.h"
#include "model/run_picture.h"

namespace culprit::library {

/// Error: usage, it is no share between 0 and 1.
Status check_tolerance(double tolerance);

/// The public form.
Comparison comparison_of(model::RunComparison compared);

/// Loads an earlier recording of the same when its turn comes: of each only its steps are kept.
using Earlier = std::function<Result<std::vector<Run>>()>;

/// Errors: as compare_runs() of <culprit/compare.h>, and those of `earlier`. Runs that must not be compared are not
/// measured; a run is given back to memory when it has been. `pictures`: filled with what a page draws of the first
/// recording of each side, which then stay in memory until all are measured; not filled where nothing is measured.
Result<model::RunComparison> compare(std::vector<Run> baseline, std::vector<Run> candidate,
                                     const CompareOptions& options, const std::vector<Earlier>& earlier = {},
                                     std::array<model::RunPicture, 2>* pictures = nullptr);

}  // namespace culprit::library
