// Which thread runs the steps of a process.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "model/cycles.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Of each of the processes the thread that has its steps, else that the program's own slices (operators, marks) fill
/// most: its track of scheduling. Processes of which none was scheduled are left out. O(slices + processes tracks).
std::map<ProcessId, TrackId> step_threads(const Trace& trace, const std::set<ProcessId>& processes);

/// Of all processes that have cycles the threads that run them: process and number. O(slices).
std::set<std::pair<ProcessId, std::int64_t>> threads_of_steps(const Trace& trace, const model::Cycles& cycles);

/// Whether what has the steps goes on to the end of the recording: not where the program ended with it, or where a
/// trace that has the steps lies beside it.
bool goes_on(const Trace& trace);

}  // namespace culprit::profile
