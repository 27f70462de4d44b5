// Quantiles and medians by one convention, so that two commands give one number for one thing: Hyndman and Fan's type 7
// ("Sample Quantiles in Statistical Packages", 1996), the default of NumPy and R. With h = (n - 1) q over the values in
// order, linear between the values at floor(h) and floor(h) + 1; so the median of an even number of values is the mean
// of the two middle ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.h"

namespace culprit::stats {

/// The quantile at `share` (0 to 1) of values in ascending order, without NaN; NaN when there are none.
double quantile_of_sorted(std::span<const double> sorted, double share);
/// The same of times, exact where a double would not be: rounded to the nearest nanosecond, halves away from the lower
/// value. There is at least one value.
Ns quantile_of_sorted(std::span<const Ns> sorted, double share);

/// The median of double, Ns or std::uint32_t values, NaN when there are none. Values must not be NaN.
template <class T>
double median(std::vector<T> values);
/// The same without a copy: reorders `values`.
template <class T>
double median_in_place(std::span<T> values);
/// The median of points in time, which a double does not hold exactly; rounded as by quantile_of_sorted. There is at
/// least one value; reorders `values`.
Ns median_of_times(std::span<Ns> values);
/// The lower and the higher of the two middle values, for numbers of things, where a mean of two is the number of
/// nothing (the launches of one copy). There is at least one value.
std::uint32_t median_low(std::vector<std::uint32_t> values);
std::uint32_t median_high(std::vector<std::uint32_t> values);

}  // namespace culprit::stats
