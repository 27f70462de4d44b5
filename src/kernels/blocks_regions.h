// Where a sequence repeats itself back to back, allowing for small differences.
//
// A suffix structure finds exact repeats, and one changed launch cuts every repeat that crosses it; aligning everything
// with everything is quadratic. Here every position votes instead: for several lengths k, the distance to the next
// place where the same k elements stand. In a repetition of period p nearly all positions vote p. An element inserted,
// lost or replaced costs the votes of its neighbourhood only, and a copy that is longer shifts the votes of one period
// by as much, so that votes within a twelfth of p count as p. Regions are chains of such votes; they are cut into
// copies by following the votes from copy to copy, so that shifts do not add up.
//
// Votes are found by hashing (linear), grouped by sorting (n log n), and scanned once per period that is a local
// maximum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::kernels {

/// A stretch of back-to-back copies.
struct RepeatRegion {
  std::uint32_t period = 0;           ///< usual distance between copies, in elements
  double density = 0;                 ///< share of positions that vote for the period
  std::vector<std::uint32_t> starts;  ///< begin of every copy and the end of the last: at least three entries
};

/// All regions of a sequence with at least two copies; they may overlap. In order of period, then begin.
std::vector<RepeatRegion> repeat_regions(std::span<const std::uint32_t> sequence);

}  // namespace culprit::kernels
