// The numbers of a whole recording.
#pragma once

#include "model/whole_run.h"
#include "trace/trace.h"

namespace culprit::profile {

/// O(n log n) in the operations of devices.
model::WholeRun whole_run_of(const Trace& trace);

}  // namespace culprit::profile
