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

/// What the status of a function was decided by.
enum class RestsOn : std::uint8_t {
  time,            ///< its time per cycle
  against_others,  ///< its time against what the other functions of its process did in the same cycles, on a host
  calls,           ///< which side's cycles call it at all
  recordings,      ///< how it differs among several recordings of each side, on a host
  per_call,        ///< how long a call takes on a device, where its time per cycle is not decided
};

/// A relative change and its 95 % interval.
struct ChangeInterval {
  double change = 0;
  double low = 0;
  double high = 0;
};

/// Whether two runs may be held against each other.
enum class Comparable : std::uint8_t {
  yes,
  partly,  ///< something differs that may explain differences
  no,
};

}  // namespace culprit
