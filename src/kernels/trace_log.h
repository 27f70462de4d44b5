// A trace as a launch log: the analyses of kernels know nothing else.
#pragma once

#include "model/kernel_log.h"
#include "trace/trace.h"

namespace culprit::kernels {

/// Kernels of a trace in order of begin (then rank, device, stream, row), with the counters that the trace holds for
/// them. Counters of profiler ranges count when there is one range for every kernel, in order and of the same name; a
/// note says when they do not. A trace without kernels gives no launches.
model::KernelLog kernel_log_of(const Trace& trace);

}  // namespace culprit::kernels
