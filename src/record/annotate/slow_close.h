// Closing many uprobes without waiting for them.
//
// The kernel takes about 0.1 s to close a place: it waits until no CPU is inside, one place after another (500 places:
// a minute). Whoever holds the last descriptor waits. So a process of its own holds them until it is told to end, and
// the kernel closes them while that process ends, when nobody waits for it any more.
#pragma once

#include <vector>

namespace culprit::record::annotate {

/// The descriptors that are open now, in order.
std::vector<int> open_descriptors();

/// A process that holds descriptors and nothing else.
class Holder {
 public:
  /// Starts it. `descriptors` in order. Where no process can be had nothing is held: closing takes its time then.
  explicit Holder(const std::vector<int>& descriptors);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  /// Tells it to end; by now the caller has closed its own.
  ~Holder();

 private:
  int end_ = -1;  ///< closed: the holder ends
};

}  // namespace culprit::record::annotate
