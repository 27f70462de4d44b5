// What work of one device waits for on another one.
#pragma once

#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

/// By row of Trace::gpu: the operation of another device that ended last of those that had to end first, because the
/// stream waited for an event (Trace::stream_waits), also through streams between them; kNone: none is known. Empty
/// where the trace knows of no waits. What stood on a stream at a moment is what had been launched by then, in the
/// order in which the calls began. O(n log n) in GPU operations; about 28 bytes each while it runs.
std::vector<GpuIndex> waits_for_devices(const Trace& trace);

}  // namespace culprit::profile
