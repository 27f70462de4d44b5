// A profiler's trace and a recording of the same seconds are one run: the one knows steps and operators, the other what
// the scheduler, the disks and other programs did meanwhile. Both tell the time of one clock and the ids of one kernel.
#pragma once

#include "core/error.h"
#include "trace/trace.h"

namespace culprit {

/// True for what `culprit record` wrote.
bool is_recording(const Trace& trace);

/// Whether `recording` is of the seconds and processes of `trace`. The error says why not: no common clock, another
/// time, another machine, no process in common.
Status belong_together(const Trace& trace, const Trace& recording);

/// Both as one run on one clock; they belong_together(). Processes of one id are one process, and so are threads; the
/// rest of the recording belongs to the rank of the first such process, whose facts become those of the recording. A
/// trace of which the recording misses more than a hundredth is a loss (recording_partial).
Trace join(Trace trace, Trace recording);

}  // namespace culprit
