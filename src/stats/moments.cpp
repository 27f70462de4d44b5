#include "stats/moments.h"

#include <cmath>
#include <limits>

namespace culprit::stats {

Moments moments(std::span<const double> values) {
  std::size_t n = 0;
  double sum = 0;
  double compensation = 0;
  double running_mean = 0;
  double squares = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    ++n;
    const double term = value - compensation;
    const double total = sum + term;
    compensation = total - sum - term;
    if (std::isnan(compensation)) compensation = 0;  // an infinite term leaves inf - inf behind
    sum = total;
    const double before = running_mean;
    running_mean += (value - before) / static_cast<double>(n);
    squares += (value - running_mean) * (value - before);
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Moments result{n, kNone, kNone};
  if (n > 0) result.mean = sum / static_cast<double>(n);
  if (n > 1) result.std = std::sqrt(squares / static_cast<double>(n - 1));
  return result;
}

}  // namespace culprit::stats
