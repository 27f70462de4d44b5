#include <algorithm>

#include "trace/trace.h"

namespace culprit {

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
  const auto earlier = [&](SliceIndex a, SliceIndex b) {
    const Slice& x = trace.slices[a];
    const Slice& y = trace.slices[b];
    if (x.begin != y.begin) return x.begin < y.begin;
    if (x.duration != y.duration) return x.duration > y.duration;
    return a < b;
  };
  for (std::size_t t = 0; t < tracks; ++t) {
    const auto first = result.order.begin() + static_cast<std::ptrdiff_t>(result.track_begin[t]);
    const auto last = result.order.begin() + static_cast<std::ptrdiff_t>(result.track_begin[t + 1]);
    if (!std::is_sorted(first, last, earlier)) std::sort(first, last, earlier);
  }
  return result;
}

}  // namespace culprit
