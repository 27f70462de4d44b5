#include "compare/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace culprit::compare {
namespace {

TEST(DriftBeyondChance, IsNoneOfValuesThatOnlySpread) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> of(0, 1);
  double sum = 0;
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<CycleValue> values;
    for (std::uint32_t i = 0; i < 64; ++i) values.push_back({i, of(random)});
    sum += drift_beyond_chance(values);
  }
  EXPECT_LT(sum / 50, 0.15) << "the means of eight such stretches spread by 0.35";
}

TEST(DriftBeyondChance, IsThatOfTheStretches) {
  std::vector<CycleValue> values;
  for (std::uint32_t i = 0; i < 80; ++i) values.push_back({i, static_cast<double>(i / 10 % 2)});
  EXPECT_NEAR(drift_beyond_chance(values), std::sqrt(2.0 / 7), 1e-12);
  EXPECT_EQ(drift_beyond_chance(std::span(values).first(15)), 0);
}

std::vector<CycleValue> dense(const std::vector<double>& values) {
  std::vector<CycleValue> all;
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back({static_cast<std::uint32_t>(i), values[i]});
  return all;
}

TEST(Series, MeanAndVarianceOfASample) {
  const Series s = summarise(dense({1, 2, 3, 4}), 4);
  EXPECT_EQ(s.n, 4U);
  EXPECT_DOUBLE_EQ(s.mean, 2.5);
  EXPECT_DOUBLE_EQ(s.variance, 5.0 / 3);
}

TEST(Series, AbsentCyclesAreZero) {
  std::mt19937_64 random(5);
  std::vector<double> values;
  std::vector<CycleValue> present;
  for (std::uint32_t i = 0; i < 200; ++i) {
    values.push_back(random() % 3 == 0 ? static_cast<double>(random() % 100 + 1) : 0);
    if (values.back() > 0) present.push_back({i, values.back()});
  }
  const Series full = summarise(dense(values), values.size());
  const Series sparse = summarise(present, values.size());
  EXPECT_NEAR(sparse.mean, full.mean, 1e-12);
  EXPECT_NEAR(sparse.variance, full.variance, 1e-9);
  EXPECT_NEAR(sparse.effective, full.effective, 1e-9);
}

TEST(Series, NeighboursThatAreAlikeCountLess) {
  std::vector<double> drift;
  std::vector<double> alternating;
  for (int i = 0; i < 60; ++i) {
    drift.push_back(i);
    alternating.push_back(i % 2);
  }
  EXPECT_LT(summarise(dense(drift), 60).effective, 5);
  EXPECT_DOUBLE_EQ(summarise(dense(alternating), 60).effective, 60);
}

TEST(Series, WhatIsMissingInACycleIsNoLikeness) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> spread(100, 1);
  std::vector<CycleValue> lasts;  // of calls, which the first cycle has none of
  for (std::uint32_t position = 1; position < 47; ++position) lasts.push_back({position, spread(random)});
  const Series series = summarise(consecutive(lasts), lasts.size());
  EXPECT_EQ(series.n, 46U);
  EXPECT_GT(series.effective, 20);
}

using Values = std::vector<double>;

/// Independent values.
Values white(std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> noise;
  Values values(n);
  for (double& value : values) value = noise(random);
  return values;
}

/// Each like the one before by `phi`; variance 1.
Values alike(double phi, std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> noise;
  Values values;
  double x = noise(random);
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(x);
    x = phi * x + std::sqrt(1 - phi * phi) * noise(random);
  }
  return values;
}

TEST(SeriesByBlocks, IndependentValuesCountAsBefore) {
  std::mt19937_64 random(11);
  int fewer = 0;
  for (int turn = 0; turn < 1000; ++turn) fewer += summarise(dense(white(400, random)), 400).effective < 150 ? 1 : 0;
  EXPECT_LE(fewer, 10) << "by next neighbours alone hardly any has so few";
}

TEST(SeriesByBlocks, LikeNeighboursCountByTheirLikenessAlone) {
  std::mt19937_64 random(12);
  for (int turn = 0; turn < 50; ++turn) {
    const double effective = summarise(dense(alike(0.9, 400, random)), 400).effective;
    EXPECT_GE(effective, 400.0 / 19 - 1e-9);
    EXPECT_LE(effective, 40);
  }
}

/// One slow wave below values that spread as much: next neighbours are half alike.
TEST(SeriesByBlocks, ASlowWanderBelowTheSpreadIsSeen) {
  std::mt19937_64 random(13);
  for (int turn = 0; turn < 50; ++turn) {
    Values values = white(400, random);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += std::sqrt(2.0) * std::sin(2 * 3.14159 * (static_cast<double>(i) / 400 + turn / 50.0));
    const Series series = summarise(dense(values), values.size());
    EXPECT_LT(series.effective, 60) << "by next neighbours alone more than 100";
    EXPECT_GE(series.effective, 7) << "there are eight blocks";
    EXPECT_LE(series.likely, series.effective + 1e-9);
  }
}

TEST(SeriesByBlocks, AbsentCyclesAreZeroInTheirBlocks) {
  std::mt19937_64 random(14);
  Values values(512, 0);
  std::vector<CycleValue> present;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (random() % 100 >= (i / 128 % 2 == 0 ? 10U : 60U)) continue;
    values[i] = 1;
    present.push_back({i, 1});
  }
  const Series sparse = summarise(present, values.size());
  EXPECT_NEAR(sparse.effective, summarise(dense(values), values.size()).effective, 1e-6);
  EXPECT_LT(sparse.effective, 60);
}

/// Intervals of pairs of equal series whose level wanders for a tenth of them. Nothing inside a series tells of what is
/// slower still, so they hold the truth less often than they say; by next neighbours alone they do one time in six.
TEST(SeriesByBlocks, IntervalsOfWhatWandersHoldTheTruthMoreOften) {
  std::mt19937_64 random(15);
  constexpr std::size_t kValues = 1600;
  const auto series = [&] {
    Values values = alike(0.99, kValues, random);
    const Values spread = white(kValues, random);
    for (std::size_t i = 0; i < kValues; ++i) values[i] = (values[i] + spread[i]) / std::sqrt(2.0);
    return summarise(dense(values), kValues);
  };
  constexpr int kPairs = 300;
  int held = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const MeanDifference d = difference_of(series(), series(), 0);
    held += std::abs(d.difference) <= d.half ? 1 : 0;
  }
  EXPECT_GE(held, kPairs * 6 / 10);
}

TEST(AllOnOneSide, WhatComesInABurstIsNoProof) {
  std::vector<CycleValue> spread;
  std::vector<CycleValue> burst;
  for (std::uint32_t i = 0; i < 30; ++i) {
    spread.push_back({i * 5, 1});
    burst.push_back({60 + i, 1});
  }
  EXPECT_LT(all_on_one_side(spread, 150, 150), 1e-8);
  EXPECT_GT(all_on_one_side(burst, 150, 150), 0.05);
  std::vector<CycleValue> each;
  for (std::uint32_t i = 0; i < 5; ++i) each.push_back({i, 1});
  EXPECT_NEAR(all_on_one_side(each, 5, 5), 1.0 / 252, 1e-9) << "of ten cycles these five";
}

TEST(Series, NothingIsNothing) {
  EXPECT_EQ(summarise({}, 0).effective, 0);
  const Series absent = summarise({}, 10);
  EXPECT_EQ(absent.mean, 0);
  EXPECT_EQ(absent.variance, 0);
}

TEST(MeanDifference, IsWelchs) {
  // 30 and 40 independent values; R: t.test gives these from the summaries.
  const Series a{30, 10, 4, 30, 30};
  const Series b{40, 12, 9, 40, 40};
  const MeanDifference d = difference_of(a, b, 0);
  EXPECT_DOUBLE_EQ(d.difference, 2);
  EXPECT_NEAR(d.error, std::sqrt(4.0 / 30 + 9.0 / 40), 1e-12);
  EXPECT_NEAR(d.degrees, 67.18, 0.01);
  EXPECT_NEAR(d.half, 1.996 * d.error, 1e-3);
}

/// Share of pairs of equal series of 40 values, each like its neighbour by `phi`, whose interval holds 0.
double coverage(double phi) {
  constexpr int kPairs = 1500;
  constexpr std::size_t kValues = 40;
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  const auto series = [&] {
    std::vector<double> values;
    double x = noise(random);
    for (std::size_t i = 0; i < kValues; ++i) {
      values.push_back(x);
      x = phi * x + std::sqrt(1 - phi * phi) * noise(random);
    }
    return summarise(dense(values), kValues);
  };
  int held = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const MeanDifference d = difference_of(series(), series(), 0);
    if (std::abs(d.difference) <= d.half) ++held;
  }
  return static_cast<double>(held) / kPairs;
}

TEST(DifferenceOf, IntervalsHoldTheTruthThoughNeighboursAreAlike) {
  for (const double phi : {0.0, 0.3, 0.6, 0.8}) EXPECT_GE(coverage(phi), 0.95) << phi;
  EXPECT_GE(coverage(0.9), 0.93);
}

TEST(SeparationByChance, OfTwoAndTwoIsAThird) {
  EXPECT_NEAR(separation_by_chance(2, 2), 1.0 / 3, 1e-12);
  EXPECT_NEAR(separation_by_chance(4, 4), 2.0 / 70, 1e-12);
}

/// `count` recordings of 40 windows, whose levels lie `apart` from each other around `level`.
PooledWindows recordings(std::size_t count, double level, double apart, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> chance;
  PooledWindows all;
  for (std::size_t r = 0; r < count; ++r) {
    const double own = level * (1 + apart * chance(random));
    std::vector<double> windows;
    for (int w = 0; w < 40; ++w) windows.push_back(own * (1 + 0.05 * chance(random)));
    all.add(windows);
  }
  return all;
}

TEST(SurelyApart, WhatIsTwiceAsMuchIsSeenThoughLevelsDiffer) {
  for (const std::size_t count : {3U, 5U}) {
    int twice = 0;
    int from_none = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
      const PooledWindows more = recordings(count, 2, 0.1, 2 * seed + 1);
      twice += surely_apart(recordings(count, 1, 0.1, 2 * seed), more) ? 1 : 0;
      from_none += surely_apart(recordings(count, 0, 0.1, 2 * seed), more) ? 1 : 0;
    }
    EXPECT_GE(twice, 180) << count;
    EXPECT_GE(from_none, 195) << count;
  }
}

TEST(SurelyApart, RecordingsOfTheSameAreSeldom) {
  for (const std::size_t count : {3U, 5U}) {
    int apart = 0;
    int by_windows = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
      const PooledWindows a = recordings(count, 1, 0.3, 2 * seed);
      const PooledWindows b = recordings(count, 1, 0.3, 2 * seed + 1);
      apart += surely_apart(a, b) ? 1 : 0;
      by_windows += surely_apart(summarise(a.values, a.values.size()), summarise(b.values, b.values.size())) ? 1 : 0;
    }
    EXPECT_LE(apart, 30) << count;
    EXPECT_GT(by_windows, apart) << count << ": what windows that are pooled make of it";
  }
}

/// A level that fell in the middle: windows wander, and count as hardly more than one.
PooledWindows fallen(double first, double second) {
  std::vector<double> windows(10, first);
  windows.resize(32, second);
  windows[5] += 0.01;
  PooledWindows all;
  all.add(windows);
  return all;
}

TEST(SurelyApart, WhatIsThereAllTheTimeOnOneSideOnlyIsHoweverItWanders) {
  EXPECT_TRUE(surely_apart(fallen(0, 0.001), fallen(0.6, 0.27)) == std::nullopt);
  PooledWindows none;
  none.add(std::vector<double>(32, 0.0));
  EXPECT_TRUE(surely_apart(none, fallen(0.6, 0.27)));
  EXPECT_TRUE(surely_apart(fallen(0.6, 0.27), none));
  EXPECT_FALSE(surely_apart(none, fallen(0.6, 0))) << "it came and went";
  EXPECT_FALSE(surely_apart(none, fallen(0.6, 0.01))) << "hardly there for most of it";
  EXPECT_FALSE(surely_apart(none, none));
}

TEST(SurelyApart, TwoRecordingsAreAsTheirWindows) {
  const PooledWindows a = recordings(2, 1, 0, 1);
  const PooledWindows b = recordings(2, 2, 0, 2);
  EXPECT_EQ(surely_apart(a, b),
            surely_apart(summarise(a.values, a.values.size()), summarise(b.values, b.values.size())));
  EXPECT_TRUE(surely_apart(a, b));
  EXPECT_FALSE(surely_apart(a, PooledWindows()));
}

}  // namespace
}  // namespace culprit::compare
