#include "stats/quantile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "stats/no_numbers.h"

namespace culprit::stats {
namespace {

constexpr Ns kFirst = std::numeric_limits<Ns>::min();
constexpr Ns kLast = std::numeric_limits<Ns>::max();

// Expected values: numpy.quantile(values, share).
TEST(Quantile, InterpolatesAsNumpyDoes) {
  const std::vector<double> values = {1, 2, 4, 8, 16};
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 0.5), 4);
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 0.9), 12.8);
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 1), 16);
}

TEST(Quantile, OfOneValueIsThatValue) {
  EXPECT_EQ(quantile_of_sorted(std::vector<double>{3}, 0.9), 3);
  EXPECT_EQ(quantile_of_sorted(std::vector<Ns>{3}, 0.9), 3);
}

TEST(Quantile, OfNothingIsNoNumber) {
  EXPECT_TRUE(std::isnan(quantile_of_sorted(std::span<const double>(), 0.5)));
  EXPECT_TRUE(std::isnan(median(std::vector<double>())));
}

TEST(Quantile, AnInfiniteNeighbourWithoutPartDoesNotCount) {
  const std::vector<double> values = {1, 2, kInfinity};
  EXPECT_EQ(quantile_of_sorted(values, 0.5), 2);
  EXPECT_EQ(quantile_of_sorted(values, 1), kInfinity);
}

TEST(Quantile, OfTimesRoundsToTheNearestHalvesUp) {
  const std::vector<Ns> values = {10, 13};
  EXPECT_EQ(quantile_of_sorted(values, 0.1), 10);
  EXPECT_EQ(quantile_of_sorted(values, 0.5), 12);
  EXPECT_EQ(quantile_of_sorted(values, 0.9), 13);
  EXPECT_EQ(quantile_of_sorted(std::vector<Ns>{-13, -10}, 0.5), -11);
}

TEST(Quantile, OfTimesIsExactWhereADoubleIsNot) {
  const Ns big = (Ns{1} << 60) + 1;
  EXPECT_EQ(quantile_of_sorted(std::vector<Ns>{big, big + 2}, 0.5), big + 1);
}

TEST(Quantile, OfTheWholeRangeOfTimesDoesNotOverflow) {
  const std::vector<Ns> values = {kFirst, kLast};
  EXPECT_EQ(quantile_of_sorted(values, 0), kFirst);
  EXPECT_EQ(quantile_of_sorted(values, 0.5), 0);
  EXPECT_EQ(quantile_of_sorted(values, 1), kLast);
}

TEST(Median, OfAnOddNumberIsTheMiddleOne) {
  EXPECT_EQ(median(std::vector<double>{5, 1, 3}), 3);
  EXPECT_EQ(median(std::vector<std::uint32_t>{5, 1, 3}), 3);
}

TEST(Median, OfAnEvenNumberIsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median(std::vector<double>{100, 200}), 150);
  EXPECT_EQ(median(std::vector<Ns>{4, 1, 2, 100}), 3);
  EXPECT_EQ(median(std::vector<Ns>{1, 2}), 1.5);
}

TEST(Median, OfNumbersOfThingsIsOneOfThem) {
  EXPECT_EQ(median_low({40, 38, 40, 38}), 38U);
  EXPECT_EQ(median_high({40, 38, 40, 38}), 40U);
  EXPECT_EQ(median_low({40, 38, 40}), 40U);
  EXPECT_EQ(median_high({38, 40, 38}), 38U);
}

TEST(Median, IsTheQuantileAtOneHalf) {
  std::vector<Ns> values;
  for (Ns n = 1; n < 40; ++n) {
    values.push_back(n * n);
    EXPECT_EQ(std::ceil(median(values)), static_cast<double>(quantile_of_sorted(values, 0.5))) << n;
    std::vector<Ns> copy = values;
    EXPECT_EQ(median_of_times(copy), quantile_of_sorted(values, 0.5)) << n;
  }
}

TEST(Median, OfTheWholeRangeOfTimesDoesNotOverflow) {
  std::vector<Ns> values = {kLast, kFirst};
  EXPECT_EQ(median_of_times(values), 0);
  EXPECT_NEAR(median(values), 0, 1);
}

TEST(Median, OfInfinitiesIsInfinite) { EXPECT_EQ(median(std::vector<double>{kInfinity, kInfinity}), kInfinity); }

}  // namespace
}  // namespace culprit::stats
