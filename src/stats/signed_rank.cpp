#include "stats/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "stats/distributions.h"

namespace culprit::stats {

namespace {

constexpr std::size_t kExact = 50;        // values up to which the distribution of W is counted out
constexpr double kMostAlike = 0.9;        // autocorrelation that is believed
constexpr double kMargin = 1;             // standard errors of an autocorrelation
constexpr double kMarginOfFew = 2;        // further ones, where few values leave no other interval
constexpr double kMostOfFew = 0.6;        // autocorrelation up to which those have one
constexpr std::size_t kFewestAlike = 16;  // values of which one is computed: of fewer it is chance

/// Of values of which each is made of the one before and chance.
double memory_by(double autocorrelation) { return (1 + autocorrelation) / (1 - autocorrelation); }

std::vector<double> distribution_of(std::size_t n) {
  std::vector<double> share(n * (n + 1) / 2 + 1, 0.0);
  share[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank)
    for (std::size_t sum = rank * (rank + 1) / 2 + 1; sum-- > 0;)
      share[sum] = (share[sum] + (sum >= rank ? share[sum - rank] : 0.0)) / 2;
  return share;
}

/// How many of the means of pairs lie outside of the interval at each end; 0: none may.
double left_out(std::size_t n, double error, double memory) {
  const auto count = static_cast<double>(n);
  const double middle = count * (count + 1) / 4 + 0.5;
  double out = 0;
  if (n <= kExact) {
    const std::vector<double> share = distribution_of(n);
    double sum = 0;
    for (std::size_t w = 0; w < share.size() && (sum += share[w]) <= error / 2; ++w) out = static_cast<double>(w) + 1;
    if (out == 0) return 0;
  } else {
    out = middle - normal_quantile(1 - error / 2) * std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  }
  return std::max(0.0, std::floor(middle - (middle - out) * std::sqrt(memory)));
}

}  // namespace

double signed_rank_tail(std::size_t n, double w) {
  if (w < 0) return 0;
  const std::vector<double> share = distribution_of(n);
  const auto last = std::min(static_cast<double>(share.size() - 1), std::floor(w));
  return std::accumulate(share.begin(), share.begin() + static_cast<std::ptrdiff_t>(last) + 1, 0.0);
}

namespace {

/// Autocorrelation at a lag of values around 0, freed of the bias of a mean that was theirs.
double autocorrelation(std::span<const double> values, std::size_t lag, double square) {
  double product = 0;
  for (std::size_t i = lag; i < values.size(); ++i) product += values[i] * values[i - lag];
  return product / square + 1 / static_cast<double>(values.size());
}

/// 1 + 2 (r1 + r2 + ...) up to where the sums of two neighbours are positive no more (Geyer's initial positive
/// sequence, Statistical Science 7, 1992): a state that changes slowly beneath much noise shows little at lag 1.
double long_memory(std::span<const double> values, double square) {
  constexpr std::size_t kLongest = 3;  // lags up to a third of the values
  double sum = -1;
  for (std::size_t lag = 0; lag + 1 <= values.size() / kLongest; lag += 2) {
    const double two = autocorrelation(values, lag, square) + autocorrelation(values, lag + 1, square);
    if (two <= 0) break;
    sum += 2 * two;
  }
  return std::max(1.0, sum);
}

}  // namespace

double memory_of(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < kFewestAlike) return 1;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> rank(n);
  const double middle = static_cast<double>(n - 1) / 2;
  for (std::size_t from = 0, to = 0; from < n; from = to) {  // equal ones share theirs
    while (to < n && values[order[to]] == values[order[from]]) ++to;
    for (std::size_t r = from; r < to; ++r) rank[order[r]] = static_cast<double>(from + to - 1) / 2 - middle;
  }
  const double square = std::inner_product(rank.begin(), rank.end(), rank.begin(), 0.0);
  if (square == 0) return 1;
  const double slow = std::min(long_memory(rank, square), memory_by(kMostAlike));
  // What is seen in n values is too low by (1 + 3 r) / n on average; a standard error more pays for chance.
  const auto count = static_cast<double>(n);
  const double seen = autocorrelation(rank, 1, square) - 1 / count;
  const double likely = seen + (1 + 3 * seen) / count;
  return likely <= 0 ? slow : std::max(slow, memory_by(std::min(likely + kMargin / std::sqrt(count), kMostAlike)));
}

SignedRankInterval signed_rank_interval(std::span<const double> values, double error, double memory) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (values.empty()) return {0, -kInfinite, kInfinite};
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) means.push_back((values[i] + values[j]) / 2);
  const auto nth = [&](std::size_t n) {
    std::ranges::nth_element(means, means.begin() + static_cast<std::ptrdiff_t>(n));
    return means[n];
  };
  SignedRankInterval result;
  result.estimate = (nth((means.size() - 1) / 2) + nth(means.size() / 2)) / 2;
  const auto out = static_cast<std::size_t>(left_out(values.size(), error, memory));
  result.low = out > 0 ? nth(out - 1) : -kInfinite;
  result.high = out > 0 ? nth(means.size() - out) : kInfinite;
  const auto plain = static_cast<std::size_t>(left_out(values.size(), error, 1));
  const double alike = (memory - 1) / (memory + 1);
  if (out > 0 || plain == 0 || alike > kMostOfFew) return result;
  // The means of few values do not reach so far: what the interval would be without memory is stretched.
  const double r = std::min(alike + kMarginOfFew / std::sqrt(static_cast<double>(values.size())), kMostAlike);
  const double wider = std::sqrt((1 + r) / (1 - r));
  result.low = result.estimate - wider * (result.estimate - nth(plain - 1));
  result.high = result.estimate + wider * (nth(means.size() - plain) - result.estimate);
  return result;
}

}  // namespace culprit::stats
