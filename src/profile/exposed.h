// Exposed time: the part of a GPU operation during which nothing more important ran on its device.
#pragma once

#include <functional>
#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

/// Tells of every stretch of time in which an operation owned its device; device by device, in the order of time. What
/// is told of none is idle. As exposed_times(), which is the sum.
void for_each_exposure(const Trace& trace, const std::function<void(GpuIndex operation, Ns begin, Ns end)>& tell);

/// By row of Trace::gpu: nanoseconds of the operation that belong to it alone. At every instant the device belongs to a
/// compute kernel before a communication kernel before a copy before a fill; of several of one class to the one that
/// began first, then the lower stream, then the lower row. The sum over a device is the time it was busy.
/// O(n log n) in GPU operations; about 28 bytes each while it runs.
std::vector<Ns> exposed_times(const Trace& trace);

}  // namespace culprit::profile
