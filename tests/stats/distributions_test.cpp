#include "stats/distributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "stats/benjamini_hochberg.h"
#include "stats/no_numbers.h"
#include "stats/welch.h"

namespace culprit::stats {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::NanSensitiveDoubleNear;

// Exact: tan(0.475 pi) for one degree; for ten, the root of the closed form that even degrees have.
TEST(StudentQuantile, HasTheTabulatedValues) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706204736174698, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.2281388519862747, 1e-12);
  EXPECT_NEAR(student_quantile(0.025, 10), -2.2281388519862747, 1e-12);
  EXPECT_NEAR(student_quantile(0.5, 3.7), 0, 1e-12);
}

TEST(StudentQuantile, OfInfinitelyManyDegreesIsTheNormalOne) {
  EXPECT_NEAR(student_quantile(0.975, kInfinity), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
}

TEST(StudentQuantile, TurnsTheTailProbabilityBack) {
  for (const double degrees : {0.3, 1.0, 2.5, 7.0, 40.0, 1e4})
    for (const double p : {0.5, 0.05, 1e-3})
      EXPECT_NEAR(student_two_sided_p(student_quantile(1 - p / 2, degrees), degrees), p, 1e-8 * p + 1e-12) << degrees;
}

TEST(StudentQuantile, OfNoProbabilityIsNoNumber) {
  EXPECT_TRUE(std::isnan(student_quantile(0, 5)));
  EXPECT_TRUE(std::isnan(student_quantile(1.5, 5)));
  EXPECT_TRUE(std::isnan(student_quantile(0.5, 0)));
  EXPECT_TRUE(std::isnan(student_quantile(0.5, kNan)));
  EXPECT_TRUE(std::isnan(normal_quantile(kNan)));
}

// R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "BH")
TEST(LogFactorial, IsThatOfWholeNumbersAndBetween) {
  EXPECT_NEAR(log_factorial(0), 0, 1e-15);
  EXPECT_NEAR(log_factorial(10), std::log(3628800.0), 1e-12);
  EXPECT_NEAR(log_factorial(0.5), std::log(std::sqrt(std::acos(-1.0)) / 2), 1e-12) << "half the square root of pi";
  EXPECT_TRUE(std::isnan(log_factorial(-0.5)));
}

TEST(FalseDiscoveryRates, AreThoseOfR) {
  EXPECT_THAT(false_discovery_rates(std::vector<double>{0.01, 0.04, 0.03, 0.005, 0.9}),
              ElementsAre(DoubleNear(0.025, 1e-15), DoubleNear(0.05, 1e-15), DoubleNear(0.05, 1e-15),
                          DoubleNear(0.025, 1e-15), DoubleNear(0.9, 1e-15)));
}

TEST(FalseDiscoveryRates, ALargerPNeverGetsASmallerRate) {
  EXPECT_THAT(false_discovery_rates(std::vector<double>{0.02, 0.021, 0.022}),
              ElementsAre(DoubleNear(0.022, 1e-15), DoubleNear(0.022, 1e-15), DoubleNear(0.022, 1e-15)));
}

TEST(FalseDiscoveryRates, NoNumberIsNoQuestion) {
  EXPECT_THAT(false_discovery_rates(std::vector<double>{0.04, kNan, 0.9}),
              ElementsAre(DoubleNear(0.08, 1e-15), NanSensitiveDoubleNear(kNan, 0), DoubleNear(0.9, 1e-15)));
  EXPECT_TRUE(false_discovery_rates({}).empty());
}

}  // namespace
}  // namespace culprit::stats
