// Profile tables have no causes of their own; what they measured per cycle is enough for some rules.
#pragma once

#include <vector>

#include "deepdive/comparison.h"
#include "deepdive/pairing.h"
#include "deepdive/profile.h"
#include "model/comparison.h"

namespace culprit::library {

/// What a comparison of traces would say, as far as two tables tell it: the outcome of the cycle durations, time and
/// calls of functions per cycle, resources by device, threads on CPUs and in run queues, and the causes of that. Where
/// the anchors differ the durations are not judged. `tolerance`: relative change of them that does not matter.
model::RunComparison comparison_of_tables(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                          const deepdive::ProcessPair& processes, bool anchors_differ,
                                          double tolerance);

}  // namespace culprit::library
