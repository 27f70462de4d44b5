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
/// a second or more that no signal ends, and that were seen for three tenths of the recording: for one that was
/// seen for a tenth, and that a CPU came to before anybody woke it, that is from its begin on. In the order of the
/// trace's tracks. O(slices).
std::vector<model::HeldThread> held_threads(const Trace& trace);

/// The time from the begin of the last step on, where only one process has any and it goes on to the end of the
/// recording: a second, twenty steps and three tenths of it or more. nullopt: it is shorter, or its process ended.
/// O(slices).
std::optional<model::LongEnd> long_end(const Trace& trace, const model::Cycles& cycles);

}  // namespace culprit::profile
