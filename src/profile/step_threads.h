// Which thread runs the steps of a process.
#pragma once

#include <map>
#include <set>

#include "trace/trace.h"

namespace culprit::profile {

/// Of each of the processes the thread that has its steps, else that the program's own slices (operators, marks) fill
/// most: its track of scheduling. Processes of which none was scheduled are left out. O(slices + processes tracks).
std::map<ProcessId, TrackId> step_threads(const Trace& trace, const std::set<ProcessId>& processes);

/// Whether what has the steps goes on to the end of the recording: not where the program ended with it, or where a
/// trace that has the steps lies beside it.
bool goes_on(const Trace& trace);

}  // namespace culprit::profile
