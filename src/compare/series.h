// One value per cycle: what its mean is, and how sure. Cycles resemble their neighbours, so n of them say less than n
// independent ones would.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace culprit::compare {

/// The value of one cycle; positions ascend.
struct CycleValue {
  std::uint32_t position = 0;
  double value = 0;
};

struct Series {
  std::size_t n = 0;
  double mean = 0;
  double variance = 0;   ///< of a sample; 0 with fewer than two values
  double effective = 0;  ///< number of independent values, with a margin for what their few tell of that
  double likely = 0;     ///< the same without a margin
};

/// Logarithms of those that have one, numbered in order.
std::vector<CycleValue> logs_of(std::span<const double> values);

/// The same values one after the other, whatever lay between them.
std::vector<CycleValue> consecutive(std::span<const CycleValue> values);

/// Of `n` cycles those in `present`, whose positions are below n, have a value, the others 0. Independent ones: n (1 -
/// r) / (1 + r) with r = clamp(autocorrelation of lag 1 + margin, 0, 0.9), the margin being 1 / sqrt(n); or fewer where
/// the means of blocks of 2, 4, ... n / 8 neighbours spread by more than such values let them, but one time in a
/// thousand: n over the largest ratio of the variance of a mean to that of independent values. O(present log n).
Series summarise(std::span<const CycleValue> present, std::size_t n);

/// Fewer independent values on a side say nothing about a spread.
inline constexpr double kFewCycles = 4;

/// Standard deviation of the means of eight stretches, without what the spread inside of the stretches makes of it; 0
/// with fewer than 16 values.
double drift_beyond_chance(std::span<const CycleValue> values);

/// Of n + m cycles these have something: that all of them are among the n, by chance. Where they come in bursts, as
/// what runs once for a while, neighbours are no cycles more. `there` is not empty, its positions are below n.
double all_on_one_side(std::span<const CycleValue> there, std::size_t n, std::size_t m);

/// The difference of two means by Welch. The margin of what neighbours tell of each other widens the variance of a mean
/// (`effective`), and not its degrees of freedom a second time (`likely`): the 95 % intervals of simulated pairs of
/// equal series hold the truth as often as they say up to an autocorrelation of 0.8 (series_test.cpp).
struct MeanDifference {
  double difference = 0;
  double error = 0;    ///< standard error
  double degrees = 0;  ///< of freedom; infinite without any spread inside the sides
  double half = 0;     ///< of the 95 % interval
};

/// `between` is the variance of the difference of two recordings of the same, which no spread inside them shows.
/// Both sides have at least kFewCycles effective values.
MeanDifference difference_of(const Series& base, const Series& candidate, double between);

/// The variance of that difference as it was measured among recordings.
struct MeasuredVariance {
  double variance = 0;
  double degrees = 0;  ///< of freedom
  double besides = 0;  ///< a further variance, which is known
};
/// What spreads inside of the sides is added, though much of it is part of what was measured: earlier recordings are
/// few, and one that was unlike the others is seldom among them.
MeanDifference difference_of(const Series& base, const Series& candidate, const MeasuredVariance& between);

/// By how many standard errors the means of a number that many are asked of lie apart: one among hundreds, read in
/// windows of two recordings. nullopt: by no more than chance moves one of them (1 in 2000 to each side, two recordings
/// of the same differing by 5 %), or by less than a quarter of the larger, or too few independent windows tell.
std::optional<double> surely_apart(const Series& a, const Series& b);

/// Of each side: fewer do not tell how much recordings of the same differ.
inline constexpr std::size_t kFewestRecordings = 3;

/// The windows of the recordings of one side, one after the other.
struct PooledWindows {
  std::vector<CycleValue> values;
  std::vector<std::size_t> first;  ///< of each recording that has any

  /// Of one more recording.
  void add(std::span<const double> windows);
};

/// Of all of them; 0 without any.
double mean_of(const PooledWindows& windows);

/// The same of the windows; or, of sixteen or more on each side, one has it in all, a quarter of its mean or more, and
/// the other in none.
/// With kFewestRecordings or more on each side how much recordings of the same differ is measured: then what those of
/// each recording are on average has to agree (a pooled t test at 1 %), or tells it alone as surely. Where levels
/// differ, many windows of few recordings tell less than they seem to.
std::optional<double> surely_apart(const PooledWindows& a, const PooledWindows& b);

/// Each value of one side is larger than all of the other's. Of `n` cycles those without a value have 0.
bool separate_fully(const std::array<std::span<const CycleValue>, 2>& values, const std::array<std::size_t, 2>& n);

/// That two groups of one distribution, of n and m independent values, separate fully, one way or the other:
/// 2 / C(n + m, n).
double separation_by_chance(double n, double m);

}  // namespace culprit::compare
