// Many questions asked at once: of a thousand functions that did not change, fifty have p below 5 %.
#pragma once

#include <span>
#include <vector>

namespace culprit::stats {

/// For each p the smallest rate of false discoveries at which it counts as a discovery (Benjamini and Hochberg,
/// "Controlling the False Discovery Rate", 1995: with the n p-values in ascending order, the least of p_k n / k over
/// k >= its rank, at most 1). In the order given. NaN is no question: it stays NaN and does not count.
std::vector<double> false_discovery_rates(std::span<const double> p);

}  // namespace culprit::stats
