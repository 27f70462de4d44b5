#include "stats/moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "stats/no_numbers.h"

namespace culprit::stats {
namespace {

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

TEST(MomentsOfTimes, AreThoseOfTheSameNumbers) {
  const std::vector<Ns> times = {2, 4, 4, 4, 5, 5, 7, 9};
  const Moments m = moments_of_times(times);
  EXPECT_EQ(m.n, 8u);
  EXPECT_DOUBLE_EQ(m.mean, 5);
  EXPECT_DOUBLE_EQ(m.std, std::sqrt(32.0 / 7));
  EXPECT_TRUE(std::isnan(moments_of_times({}).mean));
  EXPECT_EQ(moments_of_times(std::span(times).first(1)).mean, 2);
  EXPECT_TRUE(std::isnan(moments_of_times(std::span(times).first(1)).std));
}

TEST(MomentsOfTimes, TheirOrderChangesNoBit) {
  constexpr Ns kMost = std::numeric_limits<Ns>::max();
  std::vector<std::vector<Ns>> samples = {{kMost, 0, 3, kMost - 1}, {1, kMost / 3, 77, 1'000'000'007}};
  for (Ns i = 0; i < 1000; ++i) samples[1].push_back(i * i * 7919 % 104'729 + i % 3 * 1'000'003);
  samples.emplace_back(samples[1].begin() + 4, samples[1].end());
  std::mt19937 random(1);
  for (std::vector<Ns>& times : samples) {
    const Moments expected = moments_of_times(times);
    for (int i = 0; i < 20; ++i) {
      std::ranges::shuffle(times, random);
      ASSERT_EQ(moments_of_times(times).mean, expected.mean);
      ASSERT_EQ(moments_of_times(times).std, expected.std);
    }
  }
}

TEST(MomentsOfTimes, SpreadAroundALargeMeanIsExact) {
  const Ns day = 86'400'000'000'000'000;
  EXPECT_EQ(moments_of_times(std::vector<Ns>{day + 4, day + 7, day + 13, day + 16}).std, std::sqrt(30.0));
  EXPECT_EQ(moments_of_times(std::vector<Ns>(100, day)).std, 0);
}

}  // namespace
}  // namespace culprit::stats
