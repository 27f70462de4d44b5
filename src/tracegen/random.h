// Random numbers that are the same everywhere: splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", 2014), and spreads computed with integers only.
#pragma once

#include <cstdint>

#include "tracegen/options.h"

namespace culprit::tracegen {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// 0 ... `bound` - 1; bound must be below 2^32.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(((next() >> 32U) * static_cast<std::uint64_t>(bound)) >> 32U);
  }

  /// `value` times a factor with mean 1 and standard deviation of about `spread_ppm`: the sum of four uniform numbers.
  std::int64_t spread(std::int64_t value, std::int64_t spread_ppm) {
    if (spread_ppm == 0) return value;
    const std::uint64_t bits = next();
    std::int64_t sum = -131'070;
    for (unsigned shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>((bits >> shift) & 0xffffU);
    // The sum of four uniform numbers of 0 ... 65535 has a standard deviation of 65536 / sqrt(3) = 37837.
    const std::int64_t factor = kMillion + sum * spread_ppm / 37'837;
    return value / 1024 * factor / kMillion * 1024 + value % 1024 * factor / kMillion;
  }

 private:
  std::uint64_t state_;
};

}  // namespace culprit::tracegen
