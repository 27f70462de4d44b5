#include "stats/log_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace culprit::stats {
namespace {

TEST(LogBuckets, EveryValueLiesInItsBucket) {
  std::vector<std::uint64_t> values = {0, 1, 7, 8, 9, 15, 16, 17, 1000, 123456789, (std::uint64_t{1} << 41) - 1};
  for (unsigned power = 3; power < 41; ++power) values.push_back((std::uint64_t{1} << power) - 1);
  for (const std::uint64_t value : values) {
    const std::size_t bucket = log_bucket_of(value);
    EXPECT_GE(value, log_bucket_begin(bucket)) << value;
    EXPECT_LT(value, log_bucket_begin(bucket + 1)) << value;
  }
}

TEST(LogBuckets, TheyFollowEachOther) {
  for (std::size_t i = 0; i < kLogBuckets; ++i) {
    EXPECT_LT(log_bucket_begin(i), log_bucket_begin(i + 1));
    EXPECT_EQ(log_bucket_of(log_bucket_begin(i)), i);
  }
}

TEST(LogBuckets, WhatIsLargerIsInTheLast) {
  EXPECT_EQ(log_bucket_of(std::numeric_limits<std::uint64_t>::max()), kLogBuckets - 1);
}

TEST(LogBuckets, QuantilesAreWithinAnEighthOfTheExactOnes) {
  std::mt19937_64 random(7);
  for (const double spread : {0.1, 1.0, 2.5}) {
    std::lognormal_distribution<double> draw(10, spread);
    std::vector<std::uint64_t> values(5000);
    std::vector<std::uint64_t> counts(kLogBuckets);
    for (std::uint64_t& value : values) {
      value = static_cast<std::uint64_t>(draw(random));
      ++counts[log_bucket_of(value)];
    }
    std::ranges::sort(values);
    for (const double q : {0.01, 0.5, 0.9, 0.99, 0.999}) {
      const auto exact = static_cast<double>(values[static_cast<std::size_t>(q * 4999)]);
      EXPECT_NEAR(*log_bucket_quantile(counts, q) / exact, 1, 0.125) << q << " " << spread;
    }
  }
}

TEST(LogBuckets, TheMeanIsWithinASixteenth) {
  std::vector<std::uint64_t> counts(kLogBuckets);
  EXPECT_FALSE(log_bucket_mean(counts));
  for (const std::uint64_t value : {1'000'000U, 2'000'000U, 9'000'000U}) ++counts[log_bucket_of(value)];
  EXPECT_NEAR(log_bucket_mean(counts).value(), 4e6, 4e6 / 16);
}

TEST(LogBuckets, NothingCountedHasNoQuantile) {
  EXPECT_FALSE(log_bucket_quantile(std::vector<std::uint64_t>(kLogBuckets), 0.5));
  EXPECT_FALSE(log_bucket_quantile({}, 0.5));
}

TEST(LogBuckets, OneValueIsEveryQuantile) {
  std::vector<std::uint64_t> counts(kLogBuckets);
  counts[log_bucket_of(1'000'000)] = 1;
  for (const double q : {0.0, 0.5, 1.0}) EXPECT_NEAR(*log_bucket_quantile(counts, q), 1e6, 125e3);
}

}  // namespace
}  // namespace culprit::stats
