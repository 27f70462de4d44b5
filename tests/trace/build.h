// Makes traces through the builder, as readers do.
#pragma once

#include <string>
#include <string_view>

#include "trace/builder.h"

namespace culprit::test {

/// A builder with the words that tests need.
struct Building {
  TraceBuilder builder{Rank{}};

  TrackId thread(std::int64_t pid, std::int64_t tid) { return builder.track({.pid = pid, .tid = tid}); }

  Slice make(TrackId track, std::string_view category, std::string_view name, Ns begin, Ns duration,
             std::uint32_t correlation = 0) {
    Slice slice;
    slice.begin = begin;
    slice.duration = duration;
    slice.name = builder.intern(name);
    slice.track = track;
    slice.category = builder.category(category);
    slice.correlation = correlation;
    return slice;
  }
  SliceIndex slice(TrackId track, std::string_view category, std::string_view name, Ns begin, Ns duration,
                   std::uint32_t correlation = 0) {
    return builder.add(make(track, category, name, begin, duration, correlation));
  }
  SliceIndex kernel(TrackId track, std::string_view name, Ns begin, Ns duration, std::uint32_t correlation = 0,
                    std::int16_t device = 0, std::int32_t stream = 7) {
    GpuSlice gpu;
    gpu.device = device;
    gpu.stream = stream;
    return builder.add(make(track, "kernel", name, begin, duration, correlation), gpu);
  }
  void open(char phase, TrackId track, Ns at, std::string_view name = {}, std::uint64_t id = 0,
            std::string_view category = {}, std::uint32_t correlation = 0) {
    OpenEvent event;
    event.at = at;
    event.id = id;
    event.name = builder.intern(name);
    event.track = track;
    event.category = builder.category(category);
    event.phase = phase;
    event.correlation = correlation;
    builder.add(event);
  }
  Trace finish() { return std::move(builder).finish(); }
};

/// "name@begin+duration" of a row.
inline std::string text_of(const Trace& trace, SliceIndex row) {
  const Slice& s = trace.slices[row];
  return std::string(trace.name(s)) + "@" + std::to_string(s.begin) + "+" + std::to_string(s.duration);
}

/// The row of the slice with this name; kNone when there is none.
inline SliceIndex row_of(const Trace& trace, std::string_view name) {
  for (SliceIndex i = 0; i < trace.slices.size(); ++i)
    if (trace.name(trace.slices[i]) == name) return i;
  return kNone;
}

}  // namespace culprit::test
