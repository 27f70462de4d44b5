#include <array>

#include "trace/sort_runs.h"
#include "trace/trace.h"

namespace culprit {

namespace {

/// How far outside a slice of a class stands among slices of the same span; by SliceClass.
constexpr std::array<std::uint8_t, kSliceClasses> kDepth = [] {
  using enum SliceClass;
  std::array<std::uint8_t, kSliceClasses> depth{};
  constexpr std::array kFromOutside = {gpu_annotation, annotation, other,    python, cpu_op,   runtime,
                                       driver,         overhead,   gpu_sync, kernel, os_sched, syscall};
  for (std::size_t i = 0; i < kFromOutside.size(); ++i)
    depth[static_cast<std::size_t>(kFromOutside[i])] = static_cast<std::uint8_t>(i);
  for (const SliceClass gpu : {memcpy, memset, counter_range})
    depth[static_cast<std::size_t>(gpu)] = depth[static_cast<std::size_t>(kernel)];
  return depth;
}();

}  // namespace

bool stands_before(const Trace& trace, SliceIndex a, SliceIndex b) {
  const Slice& x = trace.slices[a];
  const Slice& y = trace.slices[b];
  if (x.begin != y.begin) return x.begin < y.begin;
  if (x.duration != y.duration) return x.duration > y.duration;
  const auto depth = [&](const Slice& s) { return kDepth[static_cast<std::size_t>(trace.slice_class(s))]; };
  return depth(x) != depth(y) ? depth(x) < depth(y) : a < b;
}

SliceOrder order_slices(const Trace& trace) {
  SliceOrder result;
  const std::size_t tracks = trace.tracks.size();
  const std::size_t n = trace.slices.size();
  result.track_begin.assign(tracks + 1, 0);
  for (std::size_t i = 0; i < n; ++i) ++result.track_begin[trace.slices[i].track + 1];
  for (std::size_t t = 0; t < tracks; ++t) result.track_begin[t + 1] += result.track_begin[t];
  result.order.resize(n);
  std::vector<std::uint64_t> next(result.track_begin.begin(), result.track_begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i) result.order[next[trace.slices[i].track]++] = static_cast<SliceIndex>(i);
  const auto earlier = [&](SliceIndex a, SliceIndex b) { return stands_before(trace, a, b); };
  for (std::size_t t = 0; t < tracks; ++t) {
    const auto first = result.order.begin() + static_cast<std::ptrdiff_t>(result.track_begin[t]);
    const auto last = result.order.begin() + static_cast<std::ptrdiff_t>(result.track_begin[t + 1]);
    sort_runs(first, last, earlier);
  }
  return result;
}

}  // namespace culprit
