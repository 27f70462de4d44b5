// How far paired values lie from 0, whatever their distribution: Wilcoxon's signed rank test, and the interval that is
// made of it. Differences within pairs whose order was drawn by lot are symmetric about 0 when there is no difference,
// however heavy their tails are: nothing else is assumed.
#pragma once

#include <cstddef>
#include <span>

namespace culprit::stats {

/// P(W <= w), W being the sum of the ranks of the positive ones among `n` independent symmetric values without ties.
/// Exact, O(n^3).
double signed_rank_tail(std::size_t n, double w);

/// By how much more the sum of ranks varies because neighbours resemble each other: (1 + r) / (1 - r) with the
/// autocorrelation of lag 1 of the values' ranks, freed of its bias and with a margin of its standard error where
/// it is positive, or by the autocorrelations of all lags that show some, if that is more; 19 at most. 1 otherwise, and
/// of fewer than 16 values. O(n^2).
double memory_of(std::span<const double> values);

struct SignedRankInterval {
  double estimate = 0;  ///< median of the means of all pairs of values (Hodges and Lehmann)
  double low = 0;       ///< infinite where the values are too few
  double high = 0;
};
/// The interval that misses the middle of a symmetric distribution in a share `error` of all cases. `memory` widens it
/// as memory_of() says; where few values have much of it there are no ends. O(n^2) time and memory. Without values: 0
/// and infinite ends.
SignedRankInterval signed_rank_interval(std::span<const double> values, double error, double memory = 1);

}  // namespace culprit::stats
