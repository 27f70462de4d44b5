#include "stats/welch.h"

#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>

#include "stats/policy.h"

namespace culprit::stats {

double student_two_sided_p(double t, double degrees) {
  if (std::isnan(t) || std::isnan(degrees) || degrees <= 0) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(t)) return 0;
  const double square = t * t;
  if (std::isinf(degrees) || std::isinf(square))
    return std::isinf(square) ? 0 : std::erfc(std::fabs(t) / std::sqrt(2.0));
  // Of x and 1 - x the smaller one is formed directly, so that neither end loses digits.
  return square > degrees ? boost::math::ibeta(degrees / 2, 0.5, degrees / (degrees + square), Quiet())
                          : boost::math::ibetac(0.5, degrees / 2, square / (degrees + square), Quiet());
}

std::optional<double> welch_p(const GroupSummary& a, const GroupSummary& b) {
  if (!(a.n > 1) || !(b.n > 1)) return 1.0;
  const double va = a.std * a.std / a.n;
  const double vb = b.std * b.std / b.n;
  const double v = va + vb;
  if (v == 0) {
    if (a.mean == b.mean) return std::nullopt;
    return 0.0;
  }
  const double t = (a.mean - b.mean) / std::sqrt(v);
  // Shares instead of squares of variances: those of tiny spreads would underflow.
  const double ra = va / v;
  const double rb = vb / v;
  const double degrees = 1 / (ra * ra / (a.n - 1) + rb * rb / (b.n - 1));
  const double p = student_two_sided_p(t, degrees);
  if (std::isnan(p)) return std::nullopt;
  return p;
}

}  // namespace culprit::stats
