// What the scheduler did with the threads of a recording, summed up.
#pragma once

#include <vector>

#include "model/trace_info.h"
#include "trace/trace.h"

namespace culprit::summary {

/// One row per thread with scheduling, longest on a CPU first. Empty for traces without scheduling.
std::vector<model::ThreadSchedInfo> sched_info(const Trace& trace);

}  // namespace culprit::summary
