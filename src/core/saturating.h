// Sums and differences of times from hostile input must not overflow; they stop at the end of the range instead.
#pragma once

#include <limits>

#include "core/units.h"

namespace culprit {

/// a + b, or the nearest representable time.
constexpr Ns add_saturating(Ns a, Ns b) {
  Ns sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<Ns>::max() : std::numeric_limits<Ns>::min();
}

/// a - b, or the nearest representable time.
constexpr Ns subtract_saturating(Ns a, Ns b) {
  Ns difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<Ns>::max() : std::numeric_limits<Ns>::min();
}

/// a * b, or the nearest representable time.
constexpr Ns multiply_saturating(Ns a, Ns b) {
  Ns product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<Ns>::max() : std::numeric_limits<Ns>::min();
}

}  // namespace culprit
