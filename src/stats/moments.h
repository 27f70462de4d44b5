// Means and spreads whose last bit matters: a spread of exactly zero decides whether a z-score exists at all, so sums
// of equal values must give exactly that value and exactly no spread.
#pragma once

#include <cstddef>
#include <span>

namespace culprit::stats {

struct Moments {
  std::size_t n = 0;  ///< values that are numbers
  double mean = 0;    ///< NaN without values
  double std = 0;     ///< sample standard deviation (divisor n - 1); NaN with fewer than two values
};

/// Mean by compensated (Kahan) summation, standard deviation by Welford's running update. NaN values are left out.
Moments moments(std::span<const double> values);

}  // namespace culprit::stats
