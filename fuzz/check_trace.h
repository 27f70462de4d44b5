// What holds of every trace that a reader gives, whatever it read: later stages follow references unchecked.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "trace/trace.h"

namespace culprit::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Aborts unless every reference from one column into another is in range.
inline void check(const Trace& trace) {
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    require(slice.duration >= 0);
    require(slice.name < trace.strings.size());
    require(slice.track < trace.tracks.size());
    require(slice.category < trace.categories.size());
    require(slice.rank < trace.ranks.size());
    require(slice.gpu == kNone || slice.gpu < trace.gpu.size());
    require(slice.extra == kNone || slice.extra < trace.extras.size());
  }
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    require(trace.gpu[i].slice < trace.slices.size());
    require(trace.gpu[i].launcher == kNone || trace.gpu[i].launcher < trace.slices.size());
  }
  for (const StreamWait& wait : trace.stream_waits) require(wait.slice < trace.slices.size());
  for (std::size_t i = 0; i < trace.instants.size(); ++i) require(trace.instants[i].track < trace.tracks.size());
  for (const Track& track : trace.tracks) require(track.process < trace.processes.size());
  for (const Flow& flow : trace.flows) require(flow.from < trace.slices.size() && flow.to < trace.slices.size());
  for (const CounterSeries& series : trace.counters)
    require(series.process < trace.processes.size() && series.unit < trace.strings.size());
  for (const ThreadSched& sched : trace.sched) require(sched.track < trace.tracks.size());
  for (const RivalTotal& rival : trace.rivals)
    require(rival.track < trace.tracks.size() && rival.name < trace.strings.size());
  for (std::size_t i = 0; i < trace.stack_samples.size(); ++i)
    require(trace.stack_samples[i].waker < trace.strings.size());
  require(order_slices(trace).order.size() == trace.slices.size());
}

}  // namespace culprit::fuzz
