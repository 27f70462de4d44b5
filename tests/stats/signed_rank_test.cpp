#include "stats/signed_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace culprit::stats {
namespace {

TEST(SignedRankTail, EqualsEnumeration) {
  for (unsigned n = 1; n <= 10; ++n)
    for (unsigned w = 0; w <= n * (n + 1) / 2; ++w) {
      unsigned reached = 0;
      for (std::uint32_t signs = 0; signs < (1U << n); ++signs) {
        unsigned sum = 0;
        for (unsigned i = 0; i < n; ++i)
          if ((signs >> i & 1U) != 0) sum += i + 1;
        if (sum <= w) ++reached;
      }
      EXPECT_NEAR(signed_rank_tail(n, w), reached / std::pow(2.0, n), 1e-13) << n << ' ' << w;
    }
  EXPECT_EQ(signed_rank_tail(5, -1), 0);
}

TEST(SignedRankInterval, IsThatOfTheTextbook) {
  // P(W <= 5) = 0.0195 and P(W <= 6) = 0.027: at 5 % the ends are the sixth means from outside.
  std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto interval = signed_rank_interval(values, 0.05);
  EXPECT_EQ(interval.estimate, 5);
  // Sorted means: 1, 1.5, 2, 2, 2.5, 2.5, ...
  EXPECT_EQ(interval.low, 2.5);
  EXPECT_EQ(interval.high, 7.5);
}

TEST(SignedRankInterval, TooFewValuesBoundNothing) {
  const std::vector<double> five = {1, 2, 3, 4, 5};  // the rarest outcome has 2 / 32
  EXPECT_EQ(signed_rank_interval(five, 0.05).low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(signed_rank_interval(five, 0.05).high, std::numeric_limits<double>::infinity());
  EXPECT_EQ(signed_rank_interval(five, 0.07).low, 1);
  EXPECT_EQ(signed_rank_interval(five, 0.07).high, 5);
  EXPECT_EQ(signed_rank_interval({}, 0.05).estimate, 0);
}

TEST(SignedRankInterval, MirrorsAndMovesWithItsValues) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal(0.3, 1);
  std::vector<double> values(70);
  for (double& v : values) v = normal(random);
  const auto interval = signed_rank_interval(values, 0.02, 1.7);
  std::vector<double> mirrored;
  std::vector<double> moved;
  for (const double v : values) {
    mirrored.push_back(-v);
    moved.push_back(v + 10);
  }
  const auto other = signed_rank_interval(mirrored, 0.02, 1.7);
  EXPECT_NEAR(other.low, -interval.high, 1e-12);
  EXPECT_NEAR(other.high, -interval.low, 1e-12);
  EXPECT_NEAR(signed_rank_interval(moved, 0.02, 1.7).low, interval.low + 10, 1e-12);
}

/// Share of intervals that miss 0, of `n` values that `draw` gives.
template <class Draw>
double missed(std::size_t n, double error, Draw draw) {
  constexpr int kTimes = 3000;
  int misses = 0;
  std::vector<double> values(n);
  for (int time = 0; time < kTimes; ++time) {
    double before = 0;
    for (double& v : values) before = v = draw(before);
    const auto interval = signed_rank_interval(values, error, memory_of(values));
    if (interval.low > 0 || interval.high < 0) ++misses;
  }
  return static_cast<double>(misses) / kTimes;
}

TEST(SignedRankInterval, MissesAsOftenAsItSaysWhateverTheTails) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(1.5);
  for (const std::size_t n : {std::size_t{12}, std::size_t{40}, std::size_t{90}}) {
    EXPECT_LT(missed(n, 0.05, [&](double) { return normal(random); }), 0.062) << n;
    EXPECT_LT(missed(n, 0.05, [&](double) { return heavy(random); }), 0.062) << n;
  }
}

TEST(SignedRankInterval, PaysForMemory) {
  std::mt19937 random(8);
  std::normal_distribution<double> normal;
  const auto draw = [&](double before) { return 0.4 * before + normal(random); };
  EXPECT_LT(missed(60, 0.05, draw), 0.08);
  EXPECT_LT(missed(200, 0.05, draw), 0.07);
}

TEST(SignedRankInterval, PaysForASlowStateBeneathNoise) {
  std::mt19937 random(10);
  std::normal_distribution<double> normal;
  double state = 0;
  const auto draw = [&](double) {
    state = 0.95 * state + std::sqrt(1 - 0.95 * 0.95) * normal(random);
    return 0.6 * state + normal(random);
  };
  EXPECT_LT(missed(600, 0.05, draw), 0.13);  // by neighbours alone 0.43
}

TEST(SignedRankInterval, MemoryOfFewValuesWidensItButTakesItAwayOnlyWhereItIsMuch) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  std::vector<double> values(16);
  for (double& v : values) v = normal(random);
  const auto without = signed_rank_interval(values, 0.02, 1);
  const auto with = signed_rank_interval(values, 0.02, 3);
  EXPECT_LT(with.low, without.low);
  EXPECT_GT(with.high, without.high);
  EXPECT_TRUE(std::isfinite(with.high - with.low));
  EXPECT_FALSE(std::isfinite(signed_rank_interval(values, 0.02, 9).low));
  EXPECT_FALSE(std::isfinite(signed_rank_interval(std::span(values).first(5), 0.02, 1).low));
  const auto draw = [&](double before) { return 0.5 * before + normal(random); };
  EXPECT_LT(missed(16, 0.05, draw), 0.062);
}

TEST(Memory, IsOneWithoutAny) {
  std::vector<double> alternating(40);
  for (std::size_t i = 0; i < alternating.size(); ++i) alternating[i] = i % 2 == 0 ? 1 : -1;
  EXPECT_EQ(memory_of(alternating), 1);
  EXPECT_EQ(memory_of(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 1);  // too few to tell
  std::vector<double> trend(50);
  for (std::size_t i = 0; i < trend.size(); ++i) trend[i] = static_cast<double>(i);
  EXPECT_NEAR(memory_of(trend), 19, 0.01);  // as much as is believed
}

}  // namespace
}  // namespace culprit::stats
