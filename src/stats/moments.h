// Means and spreads whose last bit matters: a spread of exactly zero decides whether a z-score exists at all, so sums
// of equal values must give exactly that value and exactly no spread.
#pragma once

#include <cstddef>
#include <span>

#include "core/units.h"

namespace culprit::stats {

struct Moments {
  std::size_t n = 0;  ///< values that are numbers
  double mean = 0;    ///< NaN without values
  double std = 0;     ///< sample standard deviation (divisor n - 1); NaN with fewer than two values
};

/// Mean by compensated (Kahan) summation, standard deviation by Welford's running update. NaN values are left out.
Moments moments(std::span<const double> values);
/// The same of times, exact before the last rounding, so that their order does not matter to a bit. Times further apart
/// than 2^47 ns (39 hours) are squared as doubles, in ascending order.
Moments moments_of_times(std::span<const Ns> times);

}  // namespace culprit::stats
