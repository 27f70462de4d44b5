// Causes in a run that nothing is held against: its ranks and devices against each other, and what takes time from a
// program wherever it is seen (a quota, others on its CPUs, a stopped process, disks, collections of garbage, input
// that it waits for). Whether steps would be shorter without it only a second run shows: impacts say what it took.
#pragma once

#include <vector>

#include "model/recording.h"
#include "model/run_diagnosis.h"

namespace culprit::diagnose {

/// Mean of the whole steps, ns; 0: there are none.
double mean_step(const model::Recording& run);

/// Where the mean step goes: each device, the thread that runs the steps, collectives. Largest part first in each
/// place; at most kMostPlaces places of a kind.
std::vector<model::StepPart> step_parts(const model::Recording& run);
inline constexpr std::size_t kMostPlaces = 8;

/// Largest impact first. `share` is of a step.
std::vector<model::Verdict> diagnose_run(const model::Recording& run);

}  // namespace culprit::diagnose
