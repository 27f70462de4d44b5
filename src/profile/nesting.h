// Who lies inside whom on a thread: what a function did itself, and which calls are one call seen twice.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

struct Nesting {
  SliceOrder order;
  /// By row: the duration minus the union of the slices directly inside on the same thread; never negative.
  std::vector<Ns> self;
  /// By row: an operator or a range that is all that another of its name holds. PyTorch's dispatcher calls an operator
  /// again under its own name; its profiler counts that as one call.
  std::vector<bool> again;
  /// By row: the slice it lies directly inside on the same thread; kNone: none, or GPU work.
  std::vector<SliceIndex> parent;
};

/// Nesting by time, as PyTorch's profiler does it: on every thread a slice lies inside the last one that began before
/// it (or with it: the order of SliceOrder decides) and ends no earlier. What ends later lies beside it, and what
/// follows inside both lies in the later one: a range often ends in the function that ends it. A microsecond is
/// forgiven, because many traces round begin and duration to that; of it only the common part is taken. GPU work does
/// not nest. The self times of properly nested slices sum to the time in which at least one of them ran. 16 bytes per
/// slice. When a stop is requested what it gives is not finished. `order`: order_slices(trace).
Nesting find_nesting(const Trace& trace, SliceOrder order, const std::stop_token& stop = {});
Nesting find_nesting(const Trace& trace, const std::stop_token& stop = {});

}  // namespace culprit::profile
