#include "stats/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace culprit::stats {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Moments, OfSmallNumbersAreTheTextbookOnes) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  const Moments m = moments(values);
  EXPECT_EQ(m.n, 8u);
  EXPECT_DOUBLE_EQ(m.mean, 5);
  EXPECT_DOUBLE_EQ(m.std, std::sqrt(32.0 / 7));
}

TEST(Moments, EqualValuesHaveExactlyThatMeanAndNoSpread) {
  for (const double value : {0.1, 85.7049, 159300.0, 2.2750000000000001e13}) {
    const std::vector<double> values(11, value);
    const Moments m = moments(values);
    EXPECT_EQ(m.mean, value);
    EXPECT_EQ(m.std, 0);
  }
}

TEST(Moments, SmallTermsBesideALargeOneAreNotLost) {
  std::vector<double> values(10001, 1.0);
  values[0] = 1e16;
  EXPECT_EQ(moments(values).mean, (1e16 + 1e4) / 10001);
}

TEST(Moments, SpreadAroundALargeMeanIsKept) {
  const std::vector<double> values = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  EXPECT_DOUBLE_EQ(moments(values).std, std::sqrt(30.0));
}

TEST(Moments, NaNIsLeftOutAndTooFewValuesGiveNone) {
  const std::vector<double> values = {kNan, 3, kNan, 5};
  EXPECT_EQ(moments(values).n, 2u);
  EXPECT_DOUBLE_EQ(moments(values).mean, 4);
  EXPECT_DOUBLE_EQ(moments(values).std, std::sqrt(2.0));
  const std::vector<double> one = {3, kNan};
  EXPECT_EQ(moments(one).mean, 3);
  EXPECT_TRUE(std::isnan(moments(one).std));
  EXPECT_EQ(moments({}).n, 0u);
  EXPECT_TRUE(std::isnan(moments({}).mean));
}

}  // namespace
}  // namespace culprit::stats
