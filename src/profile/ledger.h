// Where every nanosecond of the cycles went: the ledger.
//
// The host's window of a cycle is its period, on the thread that runs the cycles. At every instant the innermost
// function of that thread owns the time; where none is open, or only ranges that enclose functions, the time is the
// program's own ("between functions"); of that, time without work is told apart. Where a recording knows the thread's
// scheduling, the time in which it was ready or off its CPU is told apart. A device's window goes from the first
// operation launched in a cycle to the first of the next. The operation that owns the device (exposed.h) owns the time;
// idle time is explained by the operation that ends it: before its launch began by what the launching thread did then,
// during the launch by that, after it by what it waited for on another device (stream_waits.h), then by latency, inside
// of a graph by the graph. Where the thread's stack was sampled, what the samples found between functions is counted,
// too.
#pragma once

#include <cstdint>
#include <span>

#include "cycles/find.h"
#include "model/profile.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Fills Profile::ledger for the cycles of the profile whose period is known; `row_of_cycle`: by row of the cycles
/// found, row of the profile's cycles or kNone. The thread that runs the cycles of a process is the one on which most
/// of them begin with a slice; where there is none, they have no window on the host. The lines of a window sum exactly
/// to it. O(n log n) in slices; about 50 bytes for each of those threads, 24 for each GPU operation. `order`:
/// order_slices(trace).
void add_ledger(const Trace& trace, const SliceOrder& order, const cycles::Found& found,
                std::span<const std::uint32_t> row_of_cycle, model::Profile& profile);

}  // namespace culprit::profile
