// Exposed time: the part of a GPU operation during which nothing more important ran on its device.
#pragma once

#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

/// By row of Trace::gpu: nanoseconds of the operation that belong to it alone. At every instant the device belongs to a
/// compute kernel before a communication kernel before a copy before a fill; of several of one class to the one that
/// began first, then the lower stream, then the lower row. The sum over a device is the time it was busy.
/// O(n log n) in GPU operations; about 28 bytes each while it runs.
std::vector<Ns> exposed_times(const Trace& trace);

}  // namespace culprit::profile
