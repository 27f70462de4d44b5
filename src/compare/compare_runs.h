// The comparison of two runs as one call.
#pragma once

#include <span>
#include <vector>

#include "core/error.h"
#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

struct CompareOptions {
  double tolerance = 0.03;           ///< relative change of a cycle time that does not matter
  double function_tolerance = 0.05;  ///< the same of a function's time per cycle
  double between = 0.01;             ///< relative spread between two recordings of the same; assumed
  double between_on_host = 0.05;     ///< the same without work on a GPU
  double least_confidence = 0.8;     ///< that a cycle is a step: below it, on a side, there is no outcome
  double most_lost = 0.01;           ///< share of a side's events: beyond it there is no outcome
};

/// Whether the runs may be compared, from cycles and facts alone: profiles are not looked at. Several recordings of one
/// side are recordings of the same run.
model::Comparability comparability_of(std::span<const model::Recording> base,
                                      std::span<const model::Recording> candidate);

/// Compares two runs, each of one or more recordings of the same, which are pooled. Recordings that must not be
/// compared give the outcome not_comparable, with what can be said of them; their profiles may be empty. Errors: usage,
/// when a side has no recording or a recording comes twice (by its digest), unless each side is that one recording
/// alone; input, when recordings of one side are not of the same run.
/// `earlier`: further recordings of the same workload, whose spread tells how much two recordings of the same differ
/// (earlier.h); those that are not comparable are left out, with a note.
Result<model::RunComparison> compare_runs(std::vector<model::Recording> base, std::vector<model::Recording> candidate,
                                          const CompareOptions& options = {},
                                          std::span<const model::Recording> earlier = {});

}  // namespace culprit::compare
