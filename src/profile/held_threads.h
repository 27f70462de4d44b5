// Threads that could not run. A program that is starved, stopped or frozen does no step, and so no step tells of it:
// only what its threads waited for does.
#pragma once

#include <optional>
#include <vector>

#include "model/cycles.h"
#include "model/host_evidence.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Those that for four fifths or more of what was recorded of them were in the run queue, stopped, or in sleeps of half
/// a second or more that no signal ends, and that were seen for three tenths of the recording. In the order of the
/// trace's tracks. O(slices).
std::vector<model::HeldThread> held_threads(const Trace& trace);

/// The thread of the steps, where only one process has any, if it was so from the begin of the last step on to the end
/// of the recording, for a second, twenty steps and three tenths of it or more. Its times are of that time. nullopt: it
/// was not, or its process ended.
std::optional<model::HeldThread> held_at_end(const Trace& trace, const model::Cycles& cycles);

}  // namespace culprit::profile
