#include "stats/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace culprit::stats {

namespace {
__extension__ using Wide = __int128;
}

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

Moments moments_of_times(std::span<const Ns> times) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (times.empty()) return {0, kNone, kNone};
  const auto n = static_cast<Wide>(times.size());
  Wide sum = 0;
  for (const Ns time : times) sum += time;
  Moments result{times.size(), static_cast<double>(static_cast<long double>(sum) / static_cast<long double>(n)), kNone};
  if (times.size() < 2) return result;
  const auto [low, high] = std::ranges::minmax(times);
  if (high - Wide{low} >= Wide{1} << 47) {
    std::vector<double> ascending(times.begin(), times.end());
    std::ranges::sort(ascending);
    result.std = moments(ascending).std;
    return result;
  }
  // Squares of the distances to a whole number next to the mean, and what that number is off.
  const Wide center = sum / n;
  Wide squares = 0;
  for (const Ns time : times) squares += (time - center) * (time - center);
  const auto off = static_cast<long double>(sum - center * n);
  const long double variance =
      (static_cast<long double>(squares) - off * off / static_cast<long double>(n)) / static_cast<long double>(n - 1);
  result.std = static_cast<double>(std::sqrt(variance));
  return result;
}

}  // namespace culprit::stats
