// Sets of time that overlapping spans cover: how long at least one kernel ran, how much of a window was busy.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "core/units.h"

namespace culprit {

/// The times from `begin` up to, not including, `end`; none when `end` is not later.
struct Interval {
  Ns begin = 0;
  Ns end = 0;
  auto operator<=>(const Interval&) const = default;
};

/// Makes `intervals` their union: in order, disjoint, touching ones joined, empty ones gone. No sorting when they come
/// in order.
void unite(std::vector<Interval>& intervals);

/// Length of the union; `intervals` are united. Stops at the largest Ns.
Ns union_length(std::vector<Interval>& intervals);

/// Length of the part of `united` that lies inside [begin, end). `from` is the caller's cursor for windows that ascend
/// without overlapping; 0 before the first.
Ns covered(std::span<const Interval> united, Ns begin, Ns end, std::size_t& from);

}  // namespace culprit
