#include "core/intervals.h"

#include <algorithm>

#include "core/saturating.h"

namespace culprit {

void unite(std::vector<Interval>& intervals) {
  if (!std::ranges::is_sorted(intervals)) std::ranges::sort(intervals);
  std::size_t kept = 0;
  for (const Interval& interval : intervals) {
    if (interval.end <= interval.begin) continue;
    if (kept > 0 && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
}

Ns union_length(std::vector<Interval>& intervals) {
  unite(intervals);
  Ns length = 0;
  for (const Interval& interval : intervals)
    length = add_saturating(length, subtract_saturating(interval.end, interval.begin));
  return length;
}

Ns covered(std::span<const Interval> united, Ns begin, Ns end, std::size_t& from) {
  while (from < united.size() && united[from].end <= begin) ++from;
  Ns sum = 0;
  for (std::size_t i = from; i < united.size() && united[i].begin < end; ++i)
    sum = add_saturating(sum, subtract_saturating(std::min(end, united[i].end), std::max(begin, united[i].begin)));
  return sum;
}

}  // namespace culprit
