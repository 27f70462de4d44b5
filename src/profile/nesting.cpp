#include "profile/nesting.h"

#include <algorithm>
#include <utility>

namespace culprit::profile {

namespace {

constexpr Ns kRounding = 1000;

struct Frame {
  SliceIndex slice;
  Ns end;
  Ns covered;  ///< up to here the children seen so far have taken their part
  std::uint32_t children = 0;
  SliceIndex last_child = kNone;
};

class Nester {
 public:
  Nester(const Trace& trace, Nesting& nesting, const std::stop_token& stop)
      : trace_(trace), nesting_(nesting), stop_(stop) {}

  void track(TrackId track) {
    for (std::uint64_t k = nesting_.order.track_begin[track]; k < nesting_.order.track_begin[track + 1]; ++k) {
      if (stop_.stop_requested()) return;
      add(nesting_.order.order[k]);
    }
    while (!open_.empty()) close();
  }

 private:
  void add(SliceIndex index) {
    const Slice& slice = trace_.slices[index];
    nesting_.self[index] = slice.duration;
    if (is_gpu_work(trace_.slice_class(slice))) return;
    while (!open_.empty() && (open_.back().end <= slice.begin || slice.end() - open_.back().end > kRounding)) close();
    if (!open_.empty()) {
      Frame& parent = open_.back();
      ++parent.children;
      parent.last_child = index;
      nesting_.parent[index] = parent.slice;
      const Ns from = std::max(slice.begin, parent.covered);
      const Ns to = std::min(slice.end(), parent.end);
      if (to > from) {
        nesting_.self[parent.slice] -= to - from;
        parent.covered = to;
      }
    }
    open_.push_back({index, slice.end(), slice.begin});
  }

  void close() {
    const Frame& frame = open_.back();
    if (frame.children == 1) {
      const Slice& outer = trace_.slices[frame.slice];
      const Slice& inner = trace_.slices[frame.last_child];
      const SliceClass slice_class = trace_.slice_class(outer);
      if (outer.name == inner.name && outer.category == inner.category &&
          (slice_class == SliceClass::cpu_op || slice_class == SliceClass::annotation))
        nesting_.again[frame.last_child] = true;
    }
    open_.pop_back();
  }

  const Trace& trace_;
  Nesting& nesting_;
  const std::stop_token& stop_;
  std::vector<Frame> open_;
};

}  // namespace

Nesting find_nesting(const Trace& trace, const std::stop_token& stop) {
  return find_nesting(trace, order_slices(trace), stop);
}

Nesting find_nesting(const Trace& trace, SliceOrder order, const std::stop_token& stop) {
  Nesting result;
  result.order = std::move(order);
  result.self.resize(trace.slices.size());
  result.again.resize(trace.slices.size());
  result.parent.assign(trace.slices.size(), kNone);
  Nester nester(trace, result, stop);
  for (TrackId track = 0; track < trace.tracks.size(); ++track) nester.track(track);
  return result;
}

}  // namespace culprit::profile
