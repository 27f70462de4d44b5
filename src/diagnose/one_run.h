// Causes in a run that nothing is held against: its ranks and devices against each other, and what takes time from a
// program wherever it is seen (a quota, others on its CPUs, a stopped process, disks, collections of garbage, input
// that it waits for). Whether steps would be shorter without it only a second run shows: impacts say what it took.
#pragma once

#include <vector>

#include "model/recording.h"
#include "model/verdict.h"

namespace culprit::diagnose {

/// Largest impact first. `share` is of a step.
std::vector<model::Verdict> diagnose_run(const model::Recording& run);

}  // namespace culprit::diagnose
