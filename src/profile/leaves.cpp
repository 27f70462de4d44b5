#include "profile/leaves.h"

#include <limits>
#include <utility>

namespace culprit::profile {

namespace {

class Sweep {
 public:
  explicit Sweep(const Trace& trace) : trace_(trace) {}

  void open(SliceIndex index) {
    const Ns begin = trace_.slices[index].begin;
    if (leaves_.empty() && open_.empty()) now_ = begin;
    run_until(begin);
    if (now_ < begin) emit(begin);
    open_.push_back(index);
  }

  std::vector<Leaf> finish() {
    run_until(std::numeric_limits<Ns>::max());
    return std::move(leaves_);
  }

 private:
  void run_until(Ns limit) {
    while (!open_.empty()) {
      const Ns end = trace_.slices[open_.back()].end();
      if (end > now_) {
        if (now_ == limit) return;
        emit(std::min(end, limit));
      }
      if (end > now_) return;
      open_.pop_back();
    }
  }

  void emit(Ns until) {
    const SliceIndex innermost = open_.empty() ? kNone : open_.back();
    if (!leaves_.empty() && leaves_.back().slice == innermost)
      leaves_.back().end = until;
    else
      leaves_.push_back({now_, until, innermost});
    now_ = until;
  }

  const Trace& trace_;
  std::vector<SliceIndex> open_;
  std::vector<Leaf> leaves_;
  Ns now_ = 0;
};

}  // namespace

std::vector<Leaf> leaves_of(const Trace& trace, const SliceOrder& order, TrackId track) {
  Sweep sweep(trace);
  for (std::uint64_t k = order.track_begin[track]; k < order.track_begin[track + 1]; ++k) sweep.open(order.order[k]);
  return sweep.finish();
}

}  // namespace culprit::profile
