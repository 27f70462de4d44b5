#include "summary/self_time.h"

#include <algorithm>

namespace culprit::summary {

namespace {

struct Frame {
  SliceIndex slice;
  Ns end;
  Ns covered;  ///< up to here the children seen so far have taken their part
};

}  // namespace

std::vector<Ns> self_times(const Trace& trace) {
  std::vector<Ns> self(trace.slices.size());
  const SliceOrder order = order_slices(trace);
  std::vector<Frame> open;
  for (std::size_t track = 0; track < trace.tracks.size(); ++track) {
    open.clear();
    for (std::uint64_t k = order.track_begin[track]; k < order.track_begin[track + 1]; ++k) {
      const SliceIndex index = order.order[k];
      const Slice& slice = trace.slices[index];
      self[index] = slice.duration;
      if (is_gpu_work(trace.slice_class(slice))) continue;
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty()) {
        Frame& parent = open.back();
        const Ns from = std::max(slice.begin, parent.covered);
        const Ns to = std::min(slice.end(), parent.end);
        if (to > from) {
          self[parent.slice] -= to - from;
          parent.covered = to;
        }
      }
      open.push_back({index, slice.end(), slice.begin});
    }
  }
  return self;
}

}  // namespace culprit::summary
