// What a thread was in, innermost, at every instant.
#pragma once

#include <algorithm>
#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

/// A stretch of time in which one slice was the innermost.
struct Leaf {
  Ns begin = 0;
  Ns end = 0;
  SliceIndex slice = kNone;  ///< kNone: the thread was in none
};

/// From the begin of the first slice of a track to the end of the last, without gaps or overlaps, in the order of time.
/// Of several open slices the innermost is the one that began last (of those with one begin: that stands last in the
/// order). O(n) in slices of the track; at most 48 bytes for each.
std::vector<Leaf> leaves_of(const Trace& trace, const SliceOrder& order, TrackId track);

/// Calls tell(leaf, begin, end) for the parts of [begin, end) that leaves cover and, with an empty leaf, for the rest,
/// in the order of time.
template <class Tell>
void for_each_leaf(const std::vector<Leaf>& leaves, Ns begin, Ns end, Tell tell) {
  auto leaf = std::ranges::upper_bound(leaves, begin, {}, &Leaf::end);
  while (begin < end) {
    if (leaf == leaves.end() || leaf->begin >= end) return tell(Leaf{}, begin, end);
    if (leaf->begin > begin) {
      tell(Leaf{}, begin, leaf->begin);
      begin = leaf->begin;
    }
    const Ns until = std::min(leaf->end, end);
    tell(*leaf, begin, until);
    begin = until;
    ++leaf;
  }
}

}  // namespace culprit::profile
