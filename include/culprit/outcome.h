// The words in which a comparison answers.
#pragma once

#include <cstdint>

namespace culprit {

/// What became of the cycle time.
enum class Outcome : std::uint8_t { inconclusive, regression, improvement, no_change, not_comparable };

/// What became of a function's time per cycle.
enum class FunctionStatus : std::uint8_t {
  unknown,  ///< neither shown to have changed nor to be the same
  same,     ///< the 95 % interval lies within the tolerance
  changed,  ///< beyond the tolerance; false discoveries over all functions are controlled
  added,    ///< the baseline has no such function
  gone,     ///< the candidate has none
};

/// Whether two runs may be held against each other.
enum class Comparable : std::uint8_t {
  yes,
  partly,  ///< something differs that may explain differences
  no,
};

}  // namespace culprit
