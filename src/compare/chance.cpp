#include "compare/chance.h"

#include <algorithm>
#include <cmath>

#include "stats/welch.h"

namespace culprit::compare {

double chance_beyond(const MeanDifference& difference, double tolerated) {
  const double beyond = std::abs(difference.difference) - tolerated;
  if (beyond <= 0) return 1;
  return difference.error > 0 ? stats::student_two_sided_p(beyond / difference.error, difference.degrees) : 0;
}

std::optional<MeanDifference> difference_of_logs(const std::array<std::vector<double>, 2>& values, double between) {
  std::array<Series, 2> series;
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<CycleValue> logs = logs_of(values[s]);
    series[s] = summarise(logs, logs.size());
    between = std::max(between, drift_beyond_chance(logs));
  }
  if (series[0].effective < kFewCycles || series[1].effective < kFewCycles) return std::nullopt;
  return difference_of(series[0], series[1], 2 * between * between);
}

}  // namespace culprit::compare
