// Quantiles of distributions and what they are made of, by Boost.Math, whose headers stay out of this one: they take
// seconds to compile.
#pragma once

namespace culprit::stats {

/// The value below which Student's t with `degrees` of freedom lies with probability `share`; the normal distribution's
/// for infinitely many degrees. NaN when `share` is not in (0, 1) or `degrees` not positive.
double student_quantile(double share, double degrees);

/// The same of the normal distribution with mean 0 and standard deviation 1.
double normal_quantile(double share);

/// ln n!, also between whole numbers: the logarithm of the gamma function of n + 1. NaN when n is below 0.
double log_factorial(double n);

}  // namespace culprit::stats
