// Threads that could not run. A program that is starved, stopped or frozen does no step, and so no step tells of it:
// only what its threads waited for does.
#pragma once

#include <vector>

#include "model/host_evidence.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Those that for four fifths or more of what was recorded of them were in the run queue, stopped, or in a sleep that
/// no signal ends. In the order of the trace's tracks. O(slices).
std::vector<model::HeldThread> held_threads(const Trace& trace);

}  // namespace culprit::profile
