// Aligning two sequences of numbers: which elements of one stand for which of the other. The shortest edit script of
// Myers ("An O(ND) difference algorithm and its variations", 1986) in its linear-space form: time grows with length
// times number of differences, memory with the length alone. A bound keeps hostile or unlike input from taking
// quadratic time: a part with more differences than the bound is left unaligned and said to be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::kernels {

struct Aligned {
  std::uint32_t a = 0;  ///< index in the first sequence
  std::uint32_t b = 0;  ///< index in the second
};

struct Alignment {
  std::vector<Aligned> pairs;  ///< equal elements, ascending in both
  bool bounded = false;        ///< a part needed more than `max_edits` and was not aligned
};

/// `max_edits`: insertions plus deletions allowed within one part of the recursion.
Alignment align(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, std::uint32_t max_edits);

}  // namespace culprit::kernels
