// Traces consist of pieces that are in order: sorting them means merging.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace culprit {

/// Sorts [first, last) by `less`, a total order, in time proportional to its length times the logarithm of the number
/// of its ascending runs.
template <class Iterator, class Less>
void sort_runs(Iterator first, Iterator last, const Less& less) {
  constexpr std::ptrdiff_t kShort = 16;  // where runs are shorter, merging them does not pay
  std::vector<Iterator> cuts{first};
  for (Iterator it = first; last - it > 1; ++it) {
    if (!less(it[1], it[0])) continue;
    cuts.push_back(it + 1);
    if (std::ssize(cuts) * kShort > last - first + kShort * kShort) return std::sort(first, last, less);
  }
  cuts.push_back(last);
  while (cuts.size() > 2) {
    std::vector<Iterator> merged{first};
    std::size_t i = 0;
    for (; i + 2 < cuts.size(); i += 2) {
      std::inplace_merge(cuts[i], cuts[i + 1], cuts[i + 2], less);
      merged.push_back(cuts[i + 2]);
    }
    if (i + 1 < cuts.size()) merged.push_back(last);
    cuts = std::move(merged);
  }
}

}  // namespace culprit
