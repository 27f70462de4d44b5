// Mann-Whitney U test: does one group tend to have larger values than the other, whatever their distribution?
#pragma once

#include <cstddef>
#include <span>

namespace culprit::stats {

/// P(U >= u) when both groups come from one distribution without ties; u is a whole number in [0, n1 n2]. From the low
/// coefficients of the Gaussian binomial, whose sum counts the arrangements with a given U.
double mann_whitney_exact_tail(std::size_t n1, std::size_t n2, double u);

/// Two-sided p. Exact when one group has at most 8 values and the pooled values have no ties, else the normal
/// approximation with tie and continuity correction; 1 when all values are equal or a group is empty. NaN values are
/// left out.
double mann_whitney_p(std::span<const double> a, std::span<const double> b);

}  // namespace culprit::stats
