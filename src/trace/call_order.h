// Gives slices of one class, track and span rows in the order in which they were called, wherever the file has them.
//
// What was called is known by correlation id or by the number of the call (TraceBuilder::add_call), else by what the
// slices say. Files are nearly always in this order already, so it is watched for what is not; only that is sorted.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "trace/trace.h"

namespace culprit {

class CallOrder {
 public:
  explicit CallOrder(std::size_t tracks);

  /// To be called with every slice, in order of rows; `slice_class` is its class.
  void see(const Slice& slice, SliceClass slice_class) {
    if (seen_.empty()) return;
    Seen& known = seen_[group_of(slice, slice_class)];
    if (slice.begin <= known.latest && slice.correlation <= known.highest) known.unordered = unordered_ = true;
    if (slice.begin > known.latest) known.latest = slice.begin;
    if (slice.correlation == 0)
      known.highest = std::numeric_limits<std::uint32_t>::max();
    else if (slice.correlation > known.highest)
      known.highest = slice.correlation;
  }

  /// Exchanges rows of `trace` where they are not in the order of calls. GPU work must not be linked yet.
  void restore(Trace& trace) const;

 private:
  /// Of one class on one track. Rows that come later in time or with higher numbers are in order.
  struct Seen {
    Ns latest = std::numeric_limits<Ns>::min();
    std::uint32_t highest = 0;
    bool unordered = false;
  };
  static std::size_t group_of(const Slice& slice, SliceClass slice_class) {
    return slice.track * kSliceClasses + static_cast<std::size_t>(slice_class);
  }
  [[nodiscard]] std::vector<std::vector<SliceIndex>> unordered_rows(const Trace& trace) const;

  std::vector<Seen> seen_;  ///< empty for very many tracks: then everything is sorted
  bool unordered_ = false;
};

}  // namespace culprit
