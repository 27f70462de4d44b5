// Helpers of assemble.h that need no knowledge of markers: which cycle a time lies in, and unions of spans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/units.h"

namespace culprit::cycles {

using Span = std::pair<Ns, Ns>;

/// Sorts and merges spans that touch or overlap.
inline void merge_spans(std::vector<Span>& spans) {
  if (!std::is_sorted(spans.begin(), spans.end())) std::sort(spans.begin(), spans.end());
  std::size_t out = 0;
  for (const Span& s : spans) {
    if (s.second <= s.first) continue;
    if (out > 0 && s.first <= spans[out - 1].second) {
      spans[out - 1].second = std::max(spans[out - 1].second, s.second);
    } else {
      spans[out++] = s;
    }
  }
  spans.resize(out);
}

/// Length of the part of merged `spans` inside [begin, end); `from` is a cursor for ascending, non-overlapping windows.
inline Ns covered(const std::vector<Span>& spans, Ns begin, Ns end, std::size_t& from) {
  while (from < spans.size() && spans[from].second <= begin) ++from;
  Ns sum = 0;
  for (std::size_t i = from; i < spans.size() && spans[i].first < end; ++i)
    sum += std::min(end, spans[i].second) - std::max(begin, spans[i].first);
  return sum;
}

/// The middle element (the upper of two); `values` is not empty.
template <class T>
T middle_of(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace culprit::cycles
