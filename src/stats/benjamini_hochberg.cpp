#include "stats/benjamini_hochberg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace culprit::stats {

std::vector<double> false_discovery_rates(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> rates(p.size(), std::numeric_limits<double>::quiet_NaN());
  const auto n = static_cast<double>(order.size());
  double least = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    least = std::min(least, p[order[rank - 1]] * n / static_cast<double>(rank));
    rates[order[rank - 1]] = least;
  }
  return rates;
}

}  // namespace culprit::stats
