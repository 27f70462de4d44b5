#include "stats/welch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace culprit::stats {
namespace {

constexpr double kPi = 3.14159265358979323846;

// With one and two degrees of freedom the distribution has a closed form.
TEST(StudentTwoSidedP, MatchesTheClosedForms) {
  for (const double t : {0.01, 0.5, 1.0, 2.5, 12.0, 1e3, 1e6}) {
    EXPECT_NEAR(student_two_sided_p(t, 1), 1 - 2 / kPi * std::atan(t), 1e-12) << t;
    EXPECT_NEAR(student_two_sided_p(t, 2), 1 - t / std::sqrt(2 + t * t), 1e-12) << t;
    EXPECT_EQ(student_two_sided_p(t, 3), student_two_sided_p(-t, 3));
  }
}

TEST(StudentTwoSidedP, MatchesTables) {
  EXPECT_NEAR(student_two_sided_p(2.228138852, 10), 0.05, 1e-9);
  EXPECT_NEAR(student_two_sided_p(2.763262455, 28), 0.01, 1e-9);
  EXPECT_NEAR(student_two_sided_p(1.959963985, std::numeric_limits<double>::infinity()), 0.05, 1e-9);
}

TEST(StudentTwoSidedP, EndsOfTheRange) {
  EXPECT_EQ(student_two_sided_p(0, 5), 1);
  EXPECT_EQ(student_two_sided_p(std::numeric_limits<double>::infinity(), 5), 0);
  EXPECT_GT(student_two_sided_p(50, 9), 0);
  EXPECT_LT(student_two_sided_p(50, 9), 1e-11);
  EXPECT_TRUE(std::isnan(student_two_sided_p(std::numeric_limits<double>::quiet_NaN(), 5)));
  EXPECT_TRUE(std::isnan(student_two_sided_p(1, 0)));
}

TEST(WelchP, EqualSizesAndSpreadsReduceToStudent) {
  // t = 1 / sqrt(2 / 5 * 1), 8 degrees of freedom.
  EXPECT_NEAR(welch_p({1, 1, 5}, {0, 1, 5}).value(), student_two_sided_p(std::sqrt(2.5), 8), 1e-14);
}

TEST(WelchP, ASideWithoutSpreadLeavesTheOthersDegrees) {
  EXPECT_NEAR(welch_p({3, 2, 4}, {0, 0, 9}).value(), student_two_sided_p(3, 3), 1e-14);
}

TEST(WelchP, SpreadsThatDifferGiveBrokenDegrees) {
  // v1 = 4, v2 = 1: degrees (4+1)^2 / (16/3 + 1/8).
  const double degrees = 25 / (16.0 / 3 + 1.0 / 8);
  EXPECT_NEAR(welch_p({5, 4, 4}, {0, 3, 9}).value(), student_two_sided_p(std::sqrt(5.0), degrees), 1e-14);
}

TEST(WelchP, TooFewCyclesAreNoEvidence) {
  EXPECT_EQ(welch_p({5, 0, 1}, {0, 1, 9}), 1.0);
  EXPECT_EQ(welch_p({5, 1, 9}, {0, 0, 0}), 1.0);
}

TEST(WelchP, WithoutSpreadEqualMeansHaveNoAnswerAndDifferentOnesAreCertain) {
  EXPECT_EQ(welch_p({7, 0, 9}, {7, 0, 9}), std::nullopt);
  EXPECT_EQ(welch_p({7, 0, 9}, {8, 0, 9}), 0.0);
}

}  // namespace
}  // namespace culprit::stats
