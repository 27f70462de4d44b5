#include "compare/series.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "stats/distributions.h"
#include "stats/moments.h"

namespace culprit::compare {

namespace {

constexpr double kUpperEnd = 0.975;  // of a 95 % interval
constexpr double kLeastMove = 0.25;  // of the larger side
constexpr double kCertain = 0.9995;  // of some hundred numbers, one side of the distribution
constexpr double kAgrees = 0.995;    // of a few recordings, where their windows tell it
constexpr double kSpread = 0.05;     // between two recordings of the same; assumed
constexpr std::size_t kFewestBlocks = 8;

/// Sum of (x[i] - mean) (x[i - 1] - mean); cycles without a value are 0.
double lagged_products(std::span<const CycleValue> present, std::size_t n, double mean) {
  if (n < 2) return 0;
  double sum = 0;
  std::size_t pairs = n - 1;  // not looked at yet
  for (std::size_t k = 0; k < present.size(); ++k) {
    const double off = present[k].value - mean;
    const bool follows = k > 0 && present[k - 1].position + 1 == present[k].position;
    if (present[k].position > 0) {
      sum += off * ((follows ? present[k - 1].value : 0) - mean);
      --pairs;
    }
    const bool precedes = k + 1 < present.size() && present[k + 1].position == present[k].position + 1;
    if (!precedes && present[k].position + 1 < n) {
      sum += off * -mean;
      --pairs;
    }
  }
  return sum + static_cast<double>(pairs) * mean * mean;
}

/// Beyond it the variance of `blocks` means lies, against the true one, in one of a thousand normal samples (Wilson and
/// Hilferty).
double rare_ratio(double blocks) {
  constexpr double kRareQuantile = 3.0902;
  const double part = 2 / (9 * (blocks - 1));
  return std::pow(1 - part + kRareQuantile * std::sqrt(part), 3);
}

/// As how many independent values `n` with this mean and variance count by the means of 2, 4, ... n / 8 neighbours:
/// what wanders slowly below values that spread leaves next neighbours unlike, and spreads the means of many. Infinity
/// where no such means spread by more than chance lets those of values that count as `by_neighbours` do. O(present log
/// n).
double independent_by_blocks(std::span<const CycleValue> present, const Series& series, double by_neighbours) {
  double least = std::numeric_limits<double>::infinity();
  if (!(series.variance > 0)) return least;
  const auto count = static_cast<double>(series.n);
  for (unsigned shift = 1; (series.n >> shift) >= kFewestBlocks; ++shift) {
    const auto length = static_cast<double>(std::size_t{1} << shift);
    const std::size_t end = (series.n >> shift) << shift;  // what is left over is in no block
    const auto blocks = static_cast<double>(series.n >> shift);
    const double without = -series.mean * length;  // sum of what a block without values is off the mean
    double sum = 0;
    double squares = 0;
    double seen = 0;
    for (std::size_t k = 0; k < present.size() && present[k].position < end;) {
      const std::uint32_t block = present[k].position >> shift;
      double off = without;
      for (; k < present.size() && (present[k].position >> shift) == block; ++k) off += present[k].value;
      sum += off;
      squares += off * off;
      seen += 1;
    }
    sum += (blocks - seen) * without;
    squares += (blocks - seen) * without * without - sum * sum / blocks;
    const double inflation = squares / (length * (blocks - 1) * series.variance);
    if (inflation > count / by_neighbours * rare_ratio(blocks)) least = std::min(least, count / inflation);
  }
  return least;
}

/// What is 0 in every window of one side, and a quarter of its mean or more in every window of the other. However it
/// wanders meanwhile, it is there on one side only.
bool comes_or_goes(const PooledWindows& a, const PooledWindows& b) {
  constexpr std::size_t kLeastWindows = 16;
  constexpr double kLeastOfMean = 0.25;
  if (std::min(a.values.size(), b.values.size()) < kLeastWindows) return false;
  const auto is_none = [](const CycleValue& v) { return v.value == 0; };
  for (const auto& [none, some] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const double least = kLeastOfMean * mean_of(*some);
    if (least > 0 && std::ranges::all_of(none->values, is_none) &&
        std::ranges::all_of(some->values, [&](const CycleValue& v) { return v.value >= least; }))
      return true;
  }
  return false;
}

/// One value for each recording, which are independent.
Series of_recordings(const PooledWindows& windows) {
  std::vector<double> means;
  for (std::size_t i = 0; i < windows.first.size(); ++i) {
    const std::size_t end = i + 1 < windows.first.size() ? windows.first[i + 1] : windows.values.size();
    double sum = 0;
    for (std::size_t w = windows.first[i]; w < end; ++w) sum += windows.values[w].value;
    means.push_back(sum / static_cast<double>(end - windows.first[i]));
  }
  const stats::Moments moments = stats::moments(means);
  const auto n = static_cast<double>(means.size());
  return {means.size(), moments.mean, moments.std * moments.std, n, n};
}

}  // namespace

std::vector<CycleValue> logs_of(std::span<const double> values) {
  std::vector<CycleValue> logs;
  for (const double v : values)
    if (v > 0 && std::isfinite(v)) logs.push_back({static_cast<std::uint32_t>(logs.size()), std::log(v)});
  return logs;
}

std::vector<CycleValue> consecutive(std::span<const CycleValue> values) {
  std::vector<CycleValue> numbered(values.begin(), values.end());
  for (std::size_t i = 0; i < numbered.size(); ++i) numbered[i].position = static_cast<std::uint32_t>(i);
  return numbered;
}

Series summarise(std::span<const CycleValue> present, std::size_t n) {
  assert(present.empty() || present.back().position < n);
  Series series;
  series.n = n;
  if (n == 0) return series;
  const auto count = static_cast<double>(n);
  // Equal values have exactly their mean, and no spread.
  const double shift = present.size() == n ? present.front().value : 0;
  double sum = 0;
  for (const CycleValue& v : present) sum += v.value - shift;
  series.mean = shift + sum / count;
  double squares = static_cast<double>(n - present.size()) * series.mean * series.mean;
  for (const CycleValue& v : present) squares += (v.value - series.mean) * (v.value - series.mean);
  if (n > 1) series.variance = squares / (count - 1);
  const double lagged = squares > 0 ? lagged_products(present, n, series.mean) / squares : 0;
  const auto independent = [&](double margin) {
    const double r = std::clamp(lagged + margin, 0.0, 0.9);
    return count * (1 - r) / (1 + r);
  };
  series.effective = independent(1 / std::sqrt(count));
  const double by_blocks = independent_by_blocks(present, series, series.effective);
  series.effective = std::min(series.effective, by_blocks);
  series.likely = std::min(independent(0), by_blocks);
  return series;
}

double drift_beyond_chance(std::span<const CycleValue> values) {
  constexpr std::size_t kStretches = 8;
  if (values.size() < 2 * kStretches) return 0;
  std::vector<CycleValue> means;
  double by_chance = 0;
  for (std::size_t s = 0; s < kStretches; ++s) {
    const std::size_t begin = values.size() * s / kStretches;
    const std::vector<CycleValue> stretch =
        consecutive(values.subspan(begin, values.size() * (s + 1) / kStretches - begin));
    const Series inside = summarise(stretch, stretch.size());
    means.push_back({static_cast<std::uint32_t>(s), inside.mean});
    by_chance += inside.variance / static_cast<double>(inside.n) / kStretches;
  }
  return std::sqrt(std::max(0.0, summarise(means, means.size()).variance - by_chance));
}

MeanDifference difference_of(const Series& base, const Series& candidate, double between) {
  const double a = base.variance / base.effective;
  const double b = candidate.variance / candidate.effective;
  const double spread = a * a / (base.likely - 1) + b * b / (candidate.likely - 1);
  const double total = a + b + between;
  MeanDifference result;
  result.difference = candidate.mean - base.mean;
  result.error = std::sqrt(total);
  result.degrees = spread > 0 ? total * total / spread : std::numeric_limits<double>::infinity();
  result.half = stats::student_quantile(kUpperEnd, result.degrees) * result.error;
  return result;
}

MeanDifference difference_of(const Series& base, const Series& candidate, const MeasuredVariance& between) {
  MeanDifference result = difference_of(base, candidate, between.besides);
  result.error = std::sqrt(result.error * result.error + between.variance);
  // Few earlier recordings that happen to agree would else lend the sum the degrees of the many steps inside.
  result.degrees = std::min(result.degrees, between.degrees);
  result.half = stats::student_quantile(kUpperEnd, result.degrees) * result.error;
  return result;
}

std::optional<double> surely_apart(const Series& a, const Series& b) {
  if (a.effective < 2 || b.effective < 2) return std::nullopt;
  const double larger = std::max(std::abs(a.mean), std::abs(b.mean));
  const double spread = kSpread * larger;
  const MeanDifference d = difference_of(a, b, 2 * spread * spread);
  const double size = std::abs(d.difference);
  if (size < kLeastMove * larger || size <= stats::student_quantile(kCertain, d.degrees) * d.error) return std::nullopt;
  return size / d.error;
}

void PooledWindows::add(std::span<const double> windows) {
  if (windows.empty()) return;
  first.push_back(values.size());
  for (const double value : windows) values.push_back({static_cast<std::uint32_t>(values.size()), value});
}

double mean_of(const PooledWindows& windows) {
  double sum = 0;
  for (const CycleValue& window : windows.values) sum += window.value;
  return windows.values.empty() ? 0 : sum / static_cast<double>(windows.values.size());
}

std::optional<double> surely_apart(const PooledWindows& a, const PooledWindows& b) {
  auto by_windows = surely_apart(summarise(a.values, a.values.size()), summarise(b.values, b.values.size()));
  if (!by_windows && comes_or_goes(a, b))
    by_windows = stats::student_quantile(kCertain, std::numeric_limits<double>::infinity());
  if (std::min(a.first.size(), b.first.size()) < kFewestRecordings) return by_windows;
  const Series base = of_recordings(a);
  const Series candidate = of_recordings(b);
  // Alone they have to tell it as surely as windows do; few that happen to agree must not lend their number to what is
  // assumed.
  const MeanDifference measured = difference_of(base, candidate, 0);
  const double size = std::abs(measured.difference);
  if (size > stats::student_quantile(kCertain, measured.degrees) * measured.error)
    if (const auto by_recordings = surely_apart(base, candidate)) return by_recordings;
  const double degrees = base.effective + candidate.effective - 2;
  const double variance =
      ((base.effective - 1) * base.variance + (candidate.effective - 1) * candidate.variance) / degrees;
  const double error = std::sqrt(variance * (1 / base.effective + 1 / candidate.effective));
  return size > stats::student_quantile(kAgrees, degrees) * error ? by_windows : std::nullopt;
}

double all_on_one_side(std::span<const CycleValue> there, std::size_t n, std::size_t m) {
  std::vector<CycleValue> ones(there.begin(), there.end());
  for (CycleValue& cycle : ones) cycle.value = 1;
  const double independent = summarise(ones, n).likely / static_cast<double>(n);
  const auto counted = [&](std::size_t cycles) { return static_cast<double>(cycles) * independent; };
  const auto choose = [](double all, double some) {
    return stats::log_factorial(all) - stats::log_factorial(some) - stats::log_factorial(std::max(0.0, all - some));
  };
  return std::exp(choose(counted(n), counted(there.size())) - choose(counted(n + m), counted(there.size())));
}

bool separate_fully(const std::array<std::span<const CycleValue>, 2>& values, const std::array<std::size_t, 2>& n) {
  std::array<std::pair<double, double>, 2> span;  // least and most
  for (std::size_t s = 0; s < 2; ++s) {
    span[s] = {values[s].size() < n[s] ? 0 : std::numeric_limits<double>::infinity(), 0};
    for (const CycleValue& v : values[s])
      span[s] = {std::min(span[s].first, v.value), std::max(span[s].second, v.value)};
  }
  return span[1].first > span[0].second || span[1].second < span[0].first;
}

double separation_by_chance(double n, double m) {
  return 2 * std::exp(stats::log_factorial(n) + stats::log_factorial(m) - stats::log_factorial(n + m));
}

}  // namespace culprit::compare
