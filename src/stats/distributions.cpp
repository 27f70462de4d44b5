#include "stats/distributions.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "stats/policy.h"

namespace culprit::stats {

double student_quantile(double share, double degrees) {
  if (!(share > 0 && share < 1) || !(degrees > 0)) return std::numeric_limits<double>::quiet_NaN();
  return boost::math::quantile(boost::math::students_t_distribution<double, Quiet>(degrees), share);
}

double normal_quantile(double share) {
  if (!(share > 0 && share < 1)) return std::numeric_limits<double>::quiet_NaN();
  return boost::math::quantile(boost::math::normal_distribution<double, Quiet>(), share);
}

double log_factorial(double n) {
  if (!(n >= 0)) return std::numeric_limits<double>::quiet_NaN();
  return boost::math::lgamma(n + 1, Quiet());
}

}  // namespace culprit::stats
