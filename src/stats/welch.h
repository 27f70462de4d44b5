// Welch's t test: do two groups with different spreads have the same mean?
#pragma once

#include <optional>

namespace culprit::stats {

struct GroupSummary {
  double mean = 0;
  double std = 0;  ///< sample standard deviation
  double n = 0;
};

/// Two-sided p of Student's t with `degrees` of freedom: I(degrees / (degrees + t^2); degrees / 2, 1 / 2).
double student_two_sided_p(double t, double degrees);

/// Two-sided p of Welch's test from summaries: t = (m1 - m2) / sqrt(s1^2/n1 + s2^2/n2), degrees of freedom by
/// Welch-Satterthwaite. 1 when a group has fewer than two values; without any spread 0 for different means, and no
/// answer (nullopt) for equal ones.
std::optional<double> welch_p(const GroupSummary& a, const GroupSummary& b);

}  // namespace culprit::stats
