// Builds small traces by hand, so that tests of the stages after loading need no input format.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace culprit::testing_support {

/// Appends to a Trace and keeps its tables consistent: strings interned, tracks counted, GPU rows linked both ways.
class TraceMaker {
 public:
  TraceMaker() { trace_.ranks.push_back({}); }

  TrackId thread(std::int64_t pid, std::int64_t tid, std::uint16_t rank = 0) {
    Track track;
    track.process = process(pid, rank);
    track.tid = tid;
    return add(track);
  }

  TrackId stream(std::int32_t device, std::int32_t stream, std::uint16_t rank = 0) {
    Track track;
    track.process = process(device, rank);
    track.kind = TrackKind::gpu_stream;
    track.tid = stream;
    track.device = device;
    track.stream = stream;
    return add(track);
  }

  /// Of a thread, by the scheduler's account.
  TrackId sched(std::int64_t pid, std::int64_t tid) {
    Track track;
    track.process = process(pid, 0);
    track.kind = TrackKind::sched;
    track.tid = tid;
    return add(track);
  }

  std::uint16_t rank(std::int64_t number) {
    Rank rank;
    rank.rank = number;
    trace_.ranks.push_back(rank);
    return static_cast<std::uint16_t>(trace_.ranks.size() - 1);
  }

  CategoryId category(std::string_view name) {
    for (std::size_t i = 0; i < trace_.categories.size(); ++i)
      if (trace_.categories[i].name == name) return static_cast<CategoryId>(i);
    trace_.categories.push_back({std::string(name), classify_category(name)});
    return static_cast<CategoryId>(trace_.categories.size() - 1);
  }

  SliceIndex slice(TrackId track, std::string_view category_name, std::string_view name, Ns begin, Ns duration,
                   std::uint32_t correlation = 0) {
    Slice slice;
    slice.begin = begin;
    slice.duration = duration;
    slice.name = trace_.strings.intern(name);
    slice.track = track;
    slice.category = category(category_name);
    slice.correlation = correlation;
    slice.rank = trace_.processes[trace_.tracks[track].process].rank;
    ++trace_.tracks[track].slices;
    trace_.slices.push_back(slice);
    return static_cast<SliceIndex>(trace_.slices.size() - 1);
  }

  /// GPU work of category `category_name` ("kernel", "gpu_memcpy", "gpu_memset") on a stream track.
  SliceIndex gpu(TrackId track, std::string_view category_name, std::string_view name, Ns begin, Ns duration,
                 SliceIndex launcher = kNone) {
    const SliceIndex index = slice(track, category_name, name, begin, duration);
    GpuSlice gpu;
    gpu.slice = index;
    gpu.launcher = launcher;
    gpu.device = static_cast<std::int16_t>(trace_.tracks[track].device);
    gpu.stream = trace_.tracks[track].stream;
    if (launcher != kNone) trace_.slices[index].correlation = trace_.slices[launcher].correlation;
    trace_.slices[index].gpu = static_cast<GpuIndex>(trace_.gpu.size());
    trace_.gpu.push_back(gpu);
    return index;
  }

  SliceExtra& extra(SliceIndex index) {
    if (trace_.slices[index].extra == kNone) {
      trace_.slices[index].extra = static_cast<std::uint32_t>(trace_.extras.size());
      trace_.extras.push_back({});
    }
    return trace_.extras[trace_.slices[index].extra];
  }

  void flow(SliceIndex from, SliceIndex to, FlowKind kind) { trace_.flows.push_back({from, to, kind}); }

  Trace& trace() { return trace_; }

 private:
  ProcessId process(std::int64_t pid, std::uint16_t rank) {
    for (std::size_t i = 0; i < trace_.processes.size(); ++i)
      if (trace_.processes[i].pid == pid && trace_.processes[i].rank == rank) return static_cast<ProcessId>(i);
    Process process;
    process.pid = pid;
    process.rank = rank;
    trace_.processes.push_back(process);
    return static_cast<ProcessId>(trace_.processes.size() - 1);
  }

  TrackId add(const Track& track) {
    for (std::size_t i = 0; i < trace_.tracks.size(); ++i)
      if (trace_.tracks[i].process == track.process && trace_.tracks[i].tid == track.tid &&
          trace_.tracks[i].kind == track.kind)
        return static_cast<TrackId>(i);
    trace_.tracks.push_back(track);
    return static_cast<TrackId>(trace_.tracks.size() - 1);
  }

  Trace trace_;
};

}  // namespace culprit::testing_support
