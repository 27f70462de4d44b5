#include "ab/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace culprit::ab {
namespace {

using model::Outcome;
using model::Phase;

Value value(std::uint32_t pair, std::uint8_t side, double ns, int requests = 4, Phase phase = Phase::decode) {
  return {pair, side, phase, {requests, -1}, ns};
}

TEST(Differences, AreOfLikeWorkInsideOfAPair) {
  // Steps of eight take twice as long; the candidate had more of them, and each step takes 10 % longer.
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 3; ++pair) {
    for (int i = 0; i < 6; ++i) values.push_back(value(pair, 0, 1e6, 4));
    for (int i = 0; i < 2; ++i) values.push_back(value(pair, 0, 2e6, 8));
    for (int i = 0; i < 2; ++i) values.push_back(value(pair, 1, 1.1e6, 4));
    for (int i = 0; i < 6; ++i) values.push_back(value(pair, 1, 2.2e6, 8));
  }
  const auto found = differences_of(values);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].change.pairs, 3U);
  EXPECT_NEAR(found[0].change.change, 0.1, 1e-12);
  for (const double log : found[0].logs) EXPECT_NEAR(log, std::log(1.1), 1e-12);
}

TEST(Differences, WhatOnlyOneSideDidIsLeftOutAndCounted) {
  const std::vector<Value> values = {value(0, 0, 1e6, 4), value(0, 1, 2e6, 4), value(0, 1, 9e6, 12),
                                     value(1, 0, 1e6, 4), value(2, 0, 1e6, 4), value(2, 1, 2e6, 4)};
  const auto found = differences_of(values);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].change.pairs, 2U);
  EXPECT_EQ(found[0].change.other_work[0], 1U);
  EXPECT_EQ(found[0].change.other_work[1], 1U);
  EXPECT_EQ(found[0].change.values[0], 2U);
  EXPECT_NEAR(found[0].change.mean[1], 2e6, 1);
  EXPECT_NEAR(found[0].change.change, 1, 1e-12);
}

TEST(Differences, ThePhaseWithMostTimeComesFirst) {
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 4; ++pair)
    for (std::uint8_t side = 0; side < 2; ++side) {
      for (int i = 0; i < 20; ++i) values.push_back(value(pair, side, 1e6));
      values.push_back(value(pair, side, 5e6, 1, Phase::prefill));
    }
  const auto found = differences_of(values);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].change.phase, Phase::decode);
  EXPECT_EQ(found[1].change.phase, Phase::prefill);
}

TEST(Differences, OfManyPairsNeighboursAreAveraged) {
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 5000; ++pair) {
    values.push_back(value(pair, 0, 1e6));
    values.push_back(value(pair, 1, pair % 2 == 0 ? 1e6 : 1.21e6));
  }
  const auto found = differences_of(values);
  EXPECT_EQ(found[0].change.pairs, 5000U);
  EXPECT_EQ(found[0].logs.size(), 1666U);  // of three each
  EXPECT_NEAR(found[0].change.change, 0.1, 0.035);
}

TEST(Differences, AreTurnedBySwappingTheSides) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> time(14, 0.3);
  std::vector<Value> values;
  std::vector<Value> swapped;
  for (std::uint32_t pair = 0; pair < 30; ++pair)
    for (std::uint8_t side = 0; side < 2; ++side)
      for (int i = 0; i < 5; ++i) {
        const double ns = time(random);
        values.push_back(value(pair, side, ns));
        swapped.push_back(value(pair, static_cast<std::uint8_t>(1 - side), ns));
      }
  const auto a = differences_of(values);
  const auto b = differences_of(swapped);
  for (std::size_t i = 0; i < a[0].logs.size(); ++i) EXPECT_NEAR(a[0].logs[i], -b[0].logs[i], 1e-12);
  EXPECT_NEAR((1 + a[0].change.change) * (1 + b[0].change.change), 1, 1e-9);
}

TEST(Looks, AreDueAtHalvesOfTheBudget) {
  Looks looks(0.05, {});
  EXPECT_FALSE(looks.is_due(0.02, 100));  // too early
  EXPECT_FALSE(looks.is_due(0.3, 3));     // too few pairs
  EXPECT_TRUE(looks.is_due(0.3, 10));
  Differences none;
  looks.look(none, 0.3);
  EXPECT_FALSE(looks.is_due(0.4, 10));
  EXPECT_TRUE(looks.is_due(0.52, 10));
  looks.look(none, 0.52);
  EXPECT_FALSE(looks.is_due(0.99, 10));
  EXPECT_FALSE(looks.is_due(1, 10));
}

/// Pairs as they come, `budget` of them at most; the standard deviation of their logarithms is `spread`, neighbours are
/// alike by `memory`.
class Stream {
 public:
  Stream(unsigned seed, double change, double spread, double memory)
      : random_(seed), log_(std::log1p(change)), spread_(spread), memory_(memory) {}

  Differences until(std::size_t pairs) {
    while (logs_.size() < pairs) {
      // With the tails of a machine that is disturbed now and then.
      std::student_t_distribution<double> noise(3);
      noise_ = memory_ * noise_ + std::sqrt(1 - memory_ * memory_) * noise(random_);
      logs_.push_back(log_ + spread_ * noise_ / std::sqrt(3.0));
    }
    std::vector<Value> values;
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      values.push_back(value(pair, 0, 1e6));
      values.push_back(value(pair, 1, 1e6 * std::exp(logs_[pair])));
    }
    return differences_of(values).front();
  }

 private:
  std::mt19937 random_;
  double log_;
  double spread_;
  double memory_;
  double noise_ = 0;
  std::vector<double> logs_;
};

struct Ended {
  Outcome outcome = Outcome::inconclusive;
  model::PairedChange change;
};

Ended run(Stream stream, std::size_t budget, double detect, std::size_t fewest = kFewestPairs) {
  Looks looks(detect, {}, {}, fewest);
  for (std::size_t pairs = 1; pairs < budget; ++pairs) {
    const double share = static_cast<double>(pairs) / static_cast<double>(budget);
    if (!looks.is_due(share, pairs)) continue;
    Differences d = stream.until(pairs);
    if (const Outcome outcome = looks.look(d, share); outcome != Outcome::inconclusive) return {outcome, d.change};
  }
  Differences d = stream.until(budget);
  const Outcome outcome = looks.look(d, 1);
  return {outcome, d.change};
}

TEST(Looks, EqualSidesAreSeldomCalledDifferent) {
  constexpr unsigned kRuns = 400;
  for (const double memory : {0.0, 0.3}) {
    unsigned different = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      const Outcome outcome = run({seed, 0, 0.15, memory}, 240, 0.05).outcome;
      if (outcome == Outcome::regression || outcome == Outcome::improvement) ++different;
    }
    EXPECT_LE(different, kRuns / 50) << memory;
  }
}

TEST(Looks, EqualTurnsOfWhichNeighboursAreAlikeAreSeldomCalledDifferent) {
  constexpr unsigned kRuns = 400;
  for (const std::size_t budget : {12U, 240U}) {
    unsigned different = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      const Outcome outcome = run({seed, 0, 0.05, 0.5}, budget, 0.05, kFewestTurns).outcome;
      if (outcome == Outcome::regression || outcome == Outcome::improvement) ++different;
    }
    EXPECT_LE(different, kRuns / 50) << budget;
  }
}

/// Runs of which most are by `typical` shorter, and one in ten takes `slow` times as long.
Differences of_two_kinds(std::uint32_t pairs, double typical, double slow) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.01);
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    values.push_back(value(pair, 0, 50e6 * noise(random)));
    values.push_back(value(pair, 1, 50e6 * (pair % 10 == 3 ? slow : typical) * noise(random)));
  }
  return differences_of(values).front();
}

TEST(Looks, WhatIsShorterAsARuleAndLongerOnTheWholeIsNoImprovement) {
  Differences contradicted = of_two_kinds(200, 0.9, 6);
  EXPECT_EQ(Looks(0.05, {}).look(contradicted, 1), Outcome::inconclusive);
  EXPECT_LT(contradicted.change.high, -0.05);
  EXPECT_NEAR(contradicted.change.total, 0.9 * 0.9 + 0.6 - 1, 0.01);
  EXPECT_GT(contradicted.change.total_low, 0.1);
  Differences longer_on_the_whole = of_two_kinds(200, 1, 6);
  EXPECT_EQ(Looks(0.05, {}).look(longer_on_the_whole, 1), Outcome::inconclusive);
  Differences both = of_two_kinds(200, 0.9, 0.8);
  EXPECT_EQ(Looks(0.05, {}).look(both, 1), Outcome::improvement);
}

TEST(Looks, TheMeanThatContradictsIsThatOfAllStarts) {
  const auto last = [] { return of_two_kinds(200, 0.7, 6); };
  Differences alone = last();
  EXPECT_GT(alone.change.total, 0.05);
  EXPECT_EQ(Looks(0.05, {}, {{0.025, 10}}).look(alone, 1), Outcome::inconclusive);
  Looks looks(0.05, {}, {{0.025, 10}});
  const std::vector<Differences> usual = {of_two_kinds(200, 0.7, 0.7)};
  for (int start = 0; start < 3; ++start) looks.end_start(usual);
  Differences fourth = last();
  EXPECT_EQ(looks.look(fourth, 1), Outcome::improvement);
  EXPECT_LT(fourth.change.total_high, 0);
  EXPECT_LT(fourth.change.total_low, fourth.change.total);
}

TEST(Looks, AnImprovementWhoseMeanIsLongerIsNoneHoweverUnsureThatIs) {
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 33; ++pair) {
    values.push_back(value(pair, 0, 50e6 + 1e4 * (pair % 7)));
    values.push_back(value(pair, 1, pair == 11 || pair == 23 ? 300e6 : 45e6 + 1e4 * (pair % 5)));
  }
  Differences rarely = differences_of(values).front();
  EXPECT_EQ(Looks(0.05, {}).look(rarely, 1), Outcome::inconclusive);
  EXPECT_LT(rarely.change.total_low, 0);
  EXPECT_GT(rarely.change.total, 0.05);
}

TEST(Looks, OneRunThatHungContradictsNothing) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.01);
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 60; ++pair) {
    values.push_back(value(pair, 0, pair == 20 ? 10e9 : 50e6 * noise(random)));
    values.push_back(value(pair, 1, 55e6 * noise(random)));
  }
  Differences slower = differences_of(values).front();
  EXPECT_LT(slower.change.total, 0);
  EXPECT_EQ(Looks(0.05, {}).look(slower, 1), Outcome::regression);
}

TEST(Looks, FewerTurnsThanTellTheirMemoryHaveNoInterval) {
  Looks looks(0.05, {}, {}, kFewestTurns);
  Differences few = Stream(1, 1.0, 0.01, 0).until(kFewestTurns - 1);
  EXPECT_EQ(looks.look(few, 1), Outcome::inconclusive);
  EXPECT_NEAR(few.change.change, 1, 0.05);
  EXPECT_FALSE(std::isfinite(few.change.low));
  EXPECT_EQ(run({1, 1.0, 0.01, 0}, kFewestTurns, 0.05, kFewestTurns).outcome, Outcome::regression);
}

TEST(Looks, AStartOfFewTurnsIsLessSure) {
  const auto width = [](std::size_t fewest) {
    Looks looks(0.05, {}, {{0.001, 10}}, fewest);
    Differences few = Stream(1, 0, 0.1, 0).until(10);
    static_cast<void>(looks.look(few, 1));
    return few.change.high - few.change.low;
  };
  EXPECT_GT(width(kFewestTurns), 1.4 * width(kFewestPairs));
}

TEST(Looks, DifferencesAreFoundAndBoundedAsPromised) {
  constexpr unsigned kRuns = 200;
  unsigned found = 0;
  unsigned inside = 0;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    const Ended ended = run({seed, 0.05, 0.15, 0.1}, 600, 0.05);
    if (ended.outcome == Outcome::regression) ++found;
    if (ended.change.low <= 0.05 && ended.change.high >= 0.05) ++inside;
  }
  EXPECT_GE(found, kRuns * 9 / 10);
  EXPECT_GE(inside, kRuns * 93 / 100);
}

TEST(Looks, ALargeDifferenceEndsEarlyAndNoneIsExcluded) {
  EXPECT_EQ(run({1, 1.0, 0.1, 0}, 200, 0.05).outcome, Outcome::regression);
  EXPECT_LT(run({1, 1.0, 0.1, 0}, 200, 0.05).change.pairs, 30U);
  EXPECT_EQ(run({1, -0.5, 0.1, 0}, 200, 0.05).outcome, Outcome::improvement);
  EXPECT_EQ(run({1, 0, 0.02, 0}, 200, 0.05).outcome, Outcome::no_change);
}

TEST(Looks, WhatIsSmallerThanAskedForIsNoChange) {
  // Surely not 0, and surely not 5 %.
  EXPECT_EQ(run({2, 0.01, 0.005, 0}, 200, 0.05).outcome, Outcome::no_change);
}

TEST(Together, OneStartHasTheAssumedSpread) {
  const std::vector<Start> one = {{0.04, 0.01}};
  const Together all = together(one, {0.02, 10});
  EXPECT_NEAR(all.change, 0.04, 1e-12);
  EXPECT_NEAR(all.error, std::hypot(0.02, 0.01), 1e-12);
  EXPECT_NEAR(all.spread, 0.02, 1e-12);
  EXPECT_EQ(all.freedom, 10);
}

TEST(Together, StartsTellTheirSpreadBeyondTheirErrors) {
  const std::vector<Start> alike = {{0.01, 0.01}, {0.02, 0.01}, {0.0, 0.01}};
  EXPECT_LT(together(alike, {0.02, 10}).spread, 0.02);
  const std::vector<Start> unlike = {{0.2, 0.01}, {-0.1, 0.01}, {0.05, 0.01}};
  const Together all = together(unlike, {0.02, 10});
  EXPECT_GT(all.spread, 0.05);
  EXPECT_NEAR(all.freedom, 10 + 2 * 0.64, 1e-9);  // 0.64: what an error of half the spread leaves of a start
  EXPECT_NEAR(all.change, 0.05, 1e-9);
}

TEST(Together, AStartThatSaysNothingChangesNothing) {
  const std::vector<Start> two = {{0.0, 0.01}, {0.1, 0.01}};
  const std::vector<Start> three = {{0.0, 0.01}, {0.1, 0.01}, {0.05, 0.3}};
  EXPECT_NEAR(together(three, {0.025, 10}).spread, together(two, {0.025, 10}).spread, 0.001);
  EXPECT_NEAR(together(three, {0.025, 10}).error, together(two, {0.025, 10}).error, 0.001);
  std::vector<Start> one = {{0.0, 0.01}};
  const double alone = together(one, {0.025, 10}).spread;
  one.resize(10, {0.05, 0.2});
  EXPECT_NEAR(together(one, {0.025, 10}).spread, alone, 0.001);
  EXPECT_NEAR(together(one, {0.025, 10}).freedom, 10, 0.1);
}

TEST(Together, AShortStartCountsLess) {
  const std::vector<Start> starts = {{0.0, 0.01}, {0.3, 0.2}};
  EXPECT_LT(together(starts, {0.02, 10}).change, 0.05);  // of equal weight they would make 0.15
}

TEST(Together, StartsThatDifferTellSoWhereNoneIsAssumedTo) {
  const StartSpread none = {0, 3};
  const std::vector<Start> alike = {{0.15, 0}, {0.15, 0}};
  EXPECT_NEAR(together(alike, none).change, 0.15, 1e-12);
  EXPECT_EQ(together(alike, none).spread, 0);
  EXPECT_EQ(together(alike, none).freedom, 3);
  EXPECT_LT(together(alike, none).error, 1e-5);
  const std::vector<Start> unlike = {{0.15, 0}, {0.0, 0}};
  EXPECT_NEAR(together(unlike, none).freedom, 4, 1e-6);
  EXPECT_NEAR(together(unlike, none).spread, std::sqrt(0.15 * 0.15 / 2 / 4), 1e-6);
}

/// Starts of `pairs` each, whose truths lie `between` apart, until it is decided.
Ended run_starts(unsigned seed, double change, double between, std::size_t starts, std::size_t pairs) {
  std::mt19937 random(seed);
  std::normal_distribution<double> own(0, between);
  Looks looks(0.05, {}, {{0.025, 10}});
  Ended last;
  for (std::size_t start = 0; start < starts; ++start) {
    Stream stream(seed * 100 + static_cast<unsigned>(start), std::exp(std::log1p(change) + own(random)) - 1, 0.15, 0.1);
    for (std::size_t pair = 1; pair <= pairs; ++pair) {
      const double share = static_cast<double>(start * pairs + pair) / static_cast<double>(starts * pairs);
      if (share < 1 && !looks.is_due(share, pair)) continue;
      Differences d = stream.until(pair);
      last = {looks.look(d, share), d.change};
      if (last.outcome != Outcome::inconclusive) return last;
    }
    const std::vector<Differences> all = {stream.until(pairs)};
    looks.end_start(all);
  }
  return last;
}

TEST(Looks, StartsOfTheSameAreSeldomCalledDifferent) {
  constexpr unsigned kRuns = 400;
  for (const std::size_t starts : {1U, 2U, 4U}) {
    unsigned different = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      const Outcome outcome = run_starts(seed, 0, 0.025, starts, 100).outcome;
      if (outcome == Outcome::regression || outcome == Outcome::improvement) ++different;
    }
    EXPECT_LE(different, kRuns / 50) << starts;
  }
}

TEST(Looks, AChangeBeyondWhatStartsDifferByIsFoundInOneAndASmallerOneInSeveral) {
  constexpr unsigned kRuns = 200;
  unsigned large = 0;
  unsigned small = 0;
  unsigned inside = 0;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    if (run_starts(seed, 0.15, 0.025, 1, 100).outcome == Outcome::regression) ++large;
    const Ended ended = run_starts(seed, 0.08, 0.025, 4, 100);
    if (ended.outcome == Outcome::regression) ++small;
    if (ended.change.low <= 0.08 && ended.change.high >= 0.08) ++inside;
  }
  EXPECT_GE(large, kRuns * 9 / 10);
  EXPECT_GE(small, kRuns * 9 / 10);
  EXPECT_GE(inside, kRuns * 93 / 100);
}

/// So many of both sides in each pair; of the candidate one more in every second pair where they `vary`.
Differences of_counts(double baseline, double candidate, bool vary = false) {
  std::vector<Value> values;
  for (std::uint32_t pair = 0; pair < 20; ++pair) {
    values.push_back(value(pair, 0, baseline));
    values.push_back(value(pair, 1, candidate + (vary && pair % 2 == 0 ? 1 : 0)));
  }
  return differences_of(values).front();
}

constexpr Assumed kCounts = {{0.025, 10}, {0, 3}};

TEST(Looks, CountsThatAllPairsHaveAreTakenToBeThoseOfEveryStart) {
  Looks looks(0.05, {}, kCounts);
  Differences one_more = of_counts(100, 101);
  EXPECT_EQ(looks.look(one_more, 1), Outcome::no_change);
  EXPECT_NEAR(one_more.change.low, 0.01, 1e-4);
  EXPECT_NEAR(one_more.change.high, 0.01, 1e-4);
  EXPECT_TRUE(looks.between().same);
  EXPECT_EQ(looks.between().spread, 0);
  // A time that all pairs have would still be another in the next start.
  Looks of_times(0.05, {}, {{0.025, 10}});
  EXPECT_EQ(of_times.look(one_more, 1), Outcome::inconclusive);
  EXPECT_FALSE(of_times.between().same);
  EXPECT_NEAR(of_times.between().spread, 0.025, 1e-9);
}

TEST(Looks, CountsThatVaryFromPairToPairVaryBetweenStartsAsTimes) {
  Looks looks(0.05, {}, kCounts);
  Differences unsteady = of_counts(100, 101, true);
  EXPECT_EQ(looks.look(unsteady, 1), Outcome::inconclusive);
  EXPECT_FALSE(looks.between().same);
  EXPECT_EQ(looks.between().assumed.spread, 0.025);
  // Also where an earlier start had them.
  Looks later(0.05, {}, kCounts);
  later.end_start(std::vector<Differences>{of_counts(100, 101, true)});
  Differences steady = of_counts(100, 101);
  static_cast<void>(later.look(steady, 1));
  EXPECT_FALSE(later.between().same);
}

TEST(Looks, CountsOfWhichStartsDifferDecideNothing) {
  Looks looks(0.05, {}, kCounts);
  looks.end_start(std::vector<Differences>{of_counts(6, 7)});
  Differences second = of_counts(6, 6);
  EXPECT_EQ(looks.look(second, 1), Outcome::inconclusive);
  EXPECT_TRUE(looks.between().same);
  EXPECT_GT(looks.between().spread, 0.05);
  EXPECT_NEAR(looks.between().told, 1, 1e-6);
  EXPECT_LT(second.change.low, 0);
  EXPECT_GT(second.change.high, 7.0 / 6 - 1);
}

TEST(Looks, ThePhaseOfTheFirstStartDecides) {
  Looks looks(0.05, {}, {{0.025, 10}});
  Differences decode = Stream(1, 0, 0.1, 0).until(20);
  Differences prefill = decode;
  prefill.change.phase = Phase::prefill;
  std::vector<Differences> first = {decode, prefill};
  looks.end_start(first);
  std::vector<Differences> second = {prefill, decode};
  looks.put_first(second);
  EXPECT_EQ(second.front().change.phase, Phase::decode);
}

TEST(Looks, WithoutAFurtherStartTheEarlierOnesAnswer) {
  Looks looks(0.05, {}, {{0.025, 10}});
  const std::vector<Differences> all = {Stream(1, 0.5, 0.1, 0).until(60)};
  looks.end_start(all);
  Differences nothing;
  nothing.change.phase = Phase::decode;
  EXPECT_EQ(looks.look(nothing, 1), Outcome::regression);
  EXPECT_NEAR(nothing.change.change, 0.5, 0.1);
}

}  // namespace
}  // namespace culprit::ab
