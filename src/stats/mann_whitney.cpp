#include "stats/mann_whitney.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace culprit::stats {

namespace {

constexpr std::size_t kExactLimit = 8;

struct Ranked {
  double value;
  bool first_group;
};

}  // namespace

double mann_whitney_exact_tail(std::size_t n1, std::size_t n2, double u) {
  const std::size_t few = std::min(n1, n2);
  const std::size_t many = std::max(n1, n2);
  const double largest = static_cast<double>(few) * static_cast<double>(many);
  if (u <= 0) return 1;
  if (u > largest) return 0;
  // U is symmetric: P(U >= u) = P(U <= n1 n2 - u), and the low end needs only coefficients up to there.
  const auto top = static_cast<std::size_t>(largest - std::ceil(u));
  std::vector<double> count(top + 1, 0.0);
  count[0] = 1;
  double total = 1;
  for (std::size_t i = 1; i <= few; ++i) {
    const std::size_t up = many + i;
    for (std::size_t k = top + 1; k-- > up;) count[k] -= count[k - up];
    for (std::size_t k = i; k <= top; ++k) count[k] += count[k - i];
    total *= static_cast<double>(up) / static_cast<double>(i);
  }
  double sum = 0;
  for (const double c : count) sum += c;
  return std::min(1.0, sum / total);
}

double mann_whitney_p(std::span<const double> a, std::span<const double> b) {
  std::vector<Ranked> pool;
  pool.reserve(a.size() + b.size());
  for (const double value : a)
    if (!std::isnan(value)) pool.push_back({value, true});
  const std::size_t n1 = pool.size();
  for (const double value : b)
    if (!std::isnan(value)) pool.push_back({value, false});
  const std::size_t n = pool.size();
  const std::size_t n2 = n - n1;
  if (n1 == 0 || n2 == 0) return 1;
  std::sort(pool.begin(), pool.end(), [](const Ranked& x, const Ranked& y) { return x.value < y.value; });

  double rank_sum = 0;
  double tie_sum = 0;
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin + 1;
    std::size_t mine = pool[begin].first_group ? 1u : 0u;
    for (; end < n && pool[end].value == pool[begin].value; ++end) mine += pool[end].first_group ? 1u : 0u;
    const double size = static_cast<double>(end - begin);
    const double rank = (static_cast<double>(begin) + 1 + static_cast<double>(end)) / 2;
    rank_sum += rank * static_cast<double>(mine);
    tie_sum += size * size * size - size;
    begin = end;
  }
  const double x1 = static_cast<double>(n1);
  const double x2 = static_cast<double>(n2);
  const double x = static_cast<double>(n);
  const double u1 = rank_sum - x1 * (x1 + 1) / 2;
  const double u = std::max(u1, x1 * x2 - u1);
  if ((n1 <= kExactLimit || n2 <= kExactLimit) && tie_sum == 0)
    return std::clamp(2 * mann_whitney_exact_tail(n1, n2, u), 0.0, 1.0);
  const double variance = x1 * x2 / 12 * (x + 1 - tie_sum / (x * (x - 1)));
  if (!(variance > 0)) return 1;
  const double z = (u - x1 * x2 / 2 - 0.5) / std::sqrt(variance);
  return std::clamp(std::erfc(z / std::sqrt(2.0)), 0.0, 1.0);
}

}  // namespace culprit::stats
