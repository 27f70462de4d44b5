#include "compare/cycle_time.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace culprit::compare {
namespace {

using model::Outcome;

std::vector<double> normal(std::size_t n, double mean, double spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> of(mean, spread);
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(of(random));
  return values;
}

TEST(CycleTime, SlowerByFarIsARegressionAndTheOtherWayAnImprovement) {
  const auto a = normal(40, 1e7, 1e5, 1);
  const auto b = normal(40, 1.2e7, 1e5, 2);
  const auto slower = judge_cycle_time(a, b);
  EXPECT_EQ(slower.outcome, Outcome::regression);
  EXPECT_NEAR(slower.change, 0.2, 0.01);
  EXPECT_LT(slower.low, 0.2);
  EXPECT_GT(slower.high, 0.2);
  EXPECT_GT(slower.low, 0.03);
  EXPECT_EQ(judge_cycle_time(b, a).outcome, Outcome::improvement);
}

TEST(CycleTime, MediansAreOfTheSameTimesAndAFewLongOnesMoveThemLittle) {
  const std::vector<double> even = {10, 11, 12, 13, 0, 14};
  const std::vector<double> two_long = {10, 11, 12, 300, 400};
  const auto result = judge_cycle_time(even, two_long);
  EXPECT_EQ(result.median_ns, (std::array{12.0, 12.0})) << "times that are not positive are left out";
  EXPECT_GT(result.change, 2);
  const std::vector<std::uint32_t> recordings = {0, 0, 1, 1, 2};
  const auto replicates = judge_recordings({two_long, recordings}, {two_long, recordings}, 0.03, 0.01);
  ASSERT_TRUE(replicates);
  EXPECT_EQ(replicates->median_ns, (std::array{12.0, 12.0}));
}

TEST(CycleTime, TheSameIsNoChangeOnlyWhenTheIntervalIsInsideTheTolerance) {
  const std::vector<double> even(40, 1e7);
  EXPECT_EQ(judge_cycle_time(even, even).outcome, Outcome::no_change);
  const auto wide = judge_cycle_time(normal(40, 1e7, 2e6, 1), normal(40, 1e7, 2e6, 2));
  EXPECT_EQ(wide.outcome, Outcome::inconclusive);
  EXPECT_GT(wide.smallest_seen, 0.03);
}

TEST(CycleTime, InsideTheToleranceIsNoRegressionHoweverSure) {
  const std::vector<double> a(1000, 1e7);
  const std::vector<double> b(1000, 1.02e7);
  const auto result = judge_cycle_time(a, b, {.tolerance = 0.03, .between = 0.0001});
  EXPECT_EQ(result.outcome, Outcome::no_change);
  EXPECT_EQ(judge_cycle_time(a, b, {.tolerance = 0.01, .between = 0.0001}).outcome, Outcome::regression);
}

TEST(CycleTime, SwappedSidesMirrorWhateverTheTolerance) {
  for (const double tolerance : {0.01, 0.03, 0.1, 0.5})
    for (const double slower : {1.005, 1.02, 1.0295, 1.031, 1.09, 1.11, 1.49, 1.6}) {
      const auto a = normal(200, 1e7, 1e5, 1);
      const auto b = normal(200, 1e7 * slower, 1e5 * slower, 2);
      const auto there = judge_cycle_time(a, b, {.tolerance = tolerance, .between = 0.0001});
      const auto back = judge_cycle_time(b, a, {.tolerance = tolerance, .between = 0.0001});
      const Outcome mirrored = there.outcome == Outcome::regression    ? Outcome::improvement
                               : there.outcome == Outcome::improvement ? Outcome::regression
                                                                       : there.outcome;
      EXPECT_EQ(back.outcome, mirrored) << tolerance << " " << slower;
      EXPECT_NEAR(std::log1p(back.change), -std::log1p(there.change), 1e-9);
      EXPECT_NEAR(std::log1p(back.low), -std::log1p(there.high), 1e-9);
    }
}

TEST(CycleTime, WhatIsUndecidedSaysHowManyRecordingsWouldDecide) {
  const auto a = normal(400, 1e7, 1e5, 1);
  const auto enough = [&](double slower) {
    return judge_cycle_time(a, normal(400, 1e7 * slower, 1e5, 2), {.between = 0.05}).enough;
  };
  EXPECT_EQ(enough(1.5), 0U) << "decided";
  EXPECT_LE(enough(1.12), 8U);
  EXPECT_GE(enough(1.12), 3U);
  EXPECT_GT(enough(1.07), enough(1.12)) << "nearer to the tolerance takes more";
  EXPECT_EQ(enough(1.031), model::kMostRecordings + 1);
}

/// Of recordings of the same effect: how often so many as were said decide.
TEST(CycleTime, SoManyRecordingsDoDecide) {
  const auto said = judge_cycle_time(normal(400, 1e7, 1e5, 1), normal(400, 1.12e7, 1e5, 2), {.between = 0.05}).enough;
  std::mt19937_64 random(3);
  std::normal_distribution<double> level(0, 0.05);
  int decided = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<std::vector<double>, 2> times;
    std::vector<std::uint32_t> recordings;
    for (std::uint32_t r = 0; r < said; ++r) recordings.push_back(r);
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t r = 0; r < said; ++r) times[s].push_back(1e7 * (s == 0 ? 1 : 1.12) * std::exp(level(random)));
    const auto o = judge_recordings({times[0], recordings}, {times[1], recordings}, 0.03, 0);
    decided += o && o->outcome == Outcome::regression ? 1 : 0;
  }
  EXPECT_GE(decided, kTrials * 7 / 10);
}

TEST(CycleTime, FewCyclesAreInconclusiveUnlessTheSidesSeparate) {
  EXPECT_EQ(judge_cycle_time(std::vector{10.0, 10.1}, std::vector{20.0, 20.1}).outcome, Outcome::inconclusive)
      << "2 and 2 separate by chance in a third of all cases";
  const std::vector<double> four = {10, 10.2, 9.9, 10.1};
  EXPECT_EQ(judge_cycle_time(four, std::vector{13.0, 13.1, 12.9, 13.2}).outcome, Outcome::regression);
  EXPECT_EQ(judge_cycle_time(std::vector{13.0, 13.1, 12.9, 13.2}, four).outcome, Outcome::improvement);
  EXPECT_EQ(judge_cycle_time(four, std::vector{10.3, 10.4, 10.5, 10.31}).outcome, Outcome::inconclusive)
      << "separated, but by less than matters";
}

TEST(CycleTime, CyclesThatDriftCountLess) {
  std::vector<double> drift;
  for (int i = 0; i < 60; ++i) drift.push_back(1e7 + i * 1e4);
  const auto drifting = judge_cycle_time(drift, drift);
  const auto shuffled = judge_cycle_time(normal(60, 1e7, 1.7e5, 3), normal(60, 1e7, 1.7e5, 4));
  EXPECT_LT(drifting.effective[0], shuffled.effective[0] / 3);
  EXPECT_LT(shuffled.effective[0], 60);
}

TEST(CycleTime, NothingOrNonsenseIsInconclusive) {
  EXPECT_EQ(judge_cycle_time({}, std::vector{1.0}).outcome, Outcome::inconclusive);
  const std::vector<double> bad = {0, -1, std::nan(""), INFINITY};
  const auto result = judge_cycle_time(bad, bad);
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_EQ(result.cycles[0], 0U);
}

/// Steps of a recording of the same; every call is another recording.
using Recordings = std::function<std::vector<double>(std::mt19937_64&, std::size_t)>;

double gauss(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

/// Each step resembles the one before by `share`; the spread is 4 %.
Recordings alike(double share) {
  return [=](std::mt19937_64& random, std::size_t n) {
    std::vector<double> values;
    double x = gauss(random);
    for (std::size_t i = 0; i < n; ++i) {
      x = share * x + std::sqrt(1 - share * share) * gauss(random);
      values.push_back(1e7 * std::exp(0.04 * x));
    }
    return values;
  };
}

/// What `change` makes of steps with a spread of 4 %; it gets the place in the recording, 0 to 1.
Recordings steps_with(const std::function<double(std::mt19937_64&, double)>& change) {
  return [=](std::mt19937_64& random, std::size_t n) {
    std::vector<double> values = alike(0)(random, n);
    for (std::size_t i = 0; i < n; ++i) values[i] *= change(random, static_cast<double>(i) / static_cast<double>(n));
    return values;
  };
}

Recordings heavy_tails() {
  return steps_with([](std::mt19937_64& random, double) {
    return std::exp(0.1 / std::sqrt(3) * std::student_t_distribution<double>(3)(random));
  });
}
Recordings outliers() {
  return steps_with([](std::mt19937_64& random, double) { return random() % 20 == 0 ? 4.0 : 1.0; });
}
/// A recording becomes slower, or faster, all along, another one by another amount: 10 % (standard deviation).
Recordings drift() {
  return [](std::mt19937_64& random, std::size_t n) {
    const double slope = 0.1 * gauss(random);
    return steps_with([=](std::mt19937_64&, double place) { return std::exp(slope * (place - 0.5)); })(random, n);
  };
}
/// Every recording has a level of its own.
Recordings levels(double spread) {
  return [=](std::mt19937_64& random, std::size_t n) {
    const double level = std::exp(spread * gauss(random));
    return steps_with([=](std::mt19937_64&, double) { return level; })(random, n);
  };
}

struct Rates {
  double alarms = 0;  ///< share of pairs of the same called regression or improvement
  double holds = 0;   ///< share of intervals that hold 0
};

Rates rates_of(const Recordings& recordings, std::size_t n) {
  constexpr int kPairs = 400;
  int alarms = 0;
  int intervals = 0;
  int hold = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::mt19937_64 random(static_cast<std::uint64_t>(pair) * 7919 + n);
    const auto a = recordings(random, n);
    const auto o = judge_cycle_time(a, recordings(random, n));
    alarms += o.outcome == Outcome::regression || o.outcome == Outcome::improvement ? 1 : 0;
    if (!std::isfinite(o.low)) continue;
    ++intervals;
    hold += o.low <= 0 && o.high >= 0 ? 1 : 0;
  }
  return {alarms / double{kPairs}, intervals == 0 ? 1 : static_cast<double>(hold) / intervals};
}

/// What docs/diff.md promises, on series that are not the model the code computes with.
TEST(CycleTime, RecordingsOfTheSameRaiseNoAlarm) {
  for (const auto& [name, recordings] :
       {std::pair("independent", alike(0)), std::pair("alike by 0.3", alike(0.3)), std::pair("by 0.6", alike(0.6)),
        std::pair("heavy tails", heavy_tails()), std::pair("outliers", outliers()), std::pair("drift", drift()),
        std::pair("levels 1 %", levels(0.01))})
    for (const std::size_t n : {8U, 20U, 60U, 400U}) {
      const Rates rates = rates_of(recordings, n);
      EXPECT_LE(rates.alarms, 0.02) << name << ", " << n << " steps";
      if (n >= 60) {
        EXPECT_GE(rates.holds, 0.93) << name << ", " << n << " steps";
      }
    }
}

/// What it says is not covered: recordings that differ by more than is assumed. Whoever mends this mends the document.
TEST(CycleTime, RecordingsThatDifferByMoreThanIsAssumedRaiseAlarms) {
  EXPECT_GT(rates_of(levels(0.05), 60).alarms, 0.2);
}

/// Silence is no virtue by itself.
TEST(CycleTime, FifteenPercentAreFound) {
  for (const auto& [name, recordings] : {std::pair("independent", alike(0)), std::pair("alike by 0.6", alike(0.6)),
                                         std::pair("levels 1 %", levels(0.01)), std::pair("drift", drift())}) {
    int found = 0;
    constexpr int kPairs = 200;
    for (int pair = 0; pair < kPairs; ++pair) {
      std::mt19937_64 random(static_cast<std::uint64_t>(pair) + 1);
      const auto a = recordings(random, 60);
      auto b = recordings(random, 60);
      for (double& value : b) value *= 1.15;
      found += judge_cycle_time(a, b).outcome == Outcome::regression ? 1 : 0;
    }
    EXPECT_GE(found, kPairs * 9 / 10) << name;
  }
}

TEST(CycleTime, AFewStepsThatDriftApartAreNotSeparateByMoreThanChance) {
  // Both sides climb; each value of one lies above each of the other.
  const std::vector<double> a = {10.0, 10.2, 10.4, 10.6, 10.8, 11.0};
  const std::vector<double> b = {12.0, 12.2, 12.4, 12.6, 12.8, 13.0};
  EXPECT_EQ(judge_cycle_time(a, b).outcome, Outcome::inconclusive);
}

/// Recordings of the same, which differ from each other by `between` (of logarithms).
struct Replicates {
  std::vector<double> times;
  std::vector<std::uint32_t> recordings;
  RecordedTimes view() const { return {times, recordings}; }
};
Replicates replicates(std::size_t n, double level, double between, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, 1);
  Replicates all;
  for (std::uint32_t r = 0; r < n; ++r) {
    const double own = level * std::exp(between * normal(random));
    for (int i = 0; i < 40; ++i) {
      all.times.push_back(own * std::exp(0.05 * normal(random)));
      all.recordings.push_back(r);
    }
  }
  return all;
}

TEST(JudgeRecordings, OfTheSameRaiseNoAlarmHoweverMuchTheyDiffer) {
  std::mt19937_64 random(1);
  for (const double between : {0.01, 0.05, 0.15})
    for (const std::size_t n : {3U, 5U}) {
      int alarms = 0;
      int held = 0;
      for (int pair = 0; pair < 400; ++pair) {
        const Replicates a = replicates(n, 1e7, between, random);
        const Replicates b = replicates(n, 1e7, between, random);
        const auto judged = judge_recordings(a.view(), b.view(), 0.03, 0);
        ASSERT_TRUE(judged);
        alarms += judged->outcome == Outcome::regression || judged->outcome == Outcome::improvement ? 1 : 0;
        held += judged->low <= 0 && judged->high >= 0 ? 1 : 0;
      }
      EXPECT_LE(alarms, 20) << between << ", " << n;
      EXPECT_GE(held, 372) << between << ", " << n;
    }
}

TEST(JudgeRecordings, FindWhatIsLargeAgainstTheirDifferences) {
  std::mt19937_64 random(2);
  int found = 0;
  for (int pair = 0; pair < 200; ++pair) {
    const Replicates a = replicates(5, 1e7, 0.04, random);
    const Replicates b = replicates(5, 1.2e7, 0.04, random);
    found += judge_recordings(a.view(), b.view(), 0.03, 0)->outcome == Outcome::regression ? 1 : 0;
  }
  EXPECT_GE(found, 190);
}

TEST(JudgeRecordings, OneLevelOfManyStepsIsOneValue) {
  std::mt19937_64 random(3);
  const Replicates a = replicates(3, 1e7, 0.001, random);
  const Replicates b = replicates(3, 1e7, 0.001, random);
  const auto judged = judge_recordings(a.view(), b.view(), 0.03, 0);
  EXPECT_EQ(judged->outcome, Outcome::no_change);
  EXPECT_EQ(judged->effective[0], 3);
  EXPECT_EQ(judged->recordings[1], 3U);
  EXPECT_EQ(judged->cycles[0], 120U);
  EXPECT_EQ(judge_recordings(a.view(), b.view(), 0.03, 0.05)->outcome, Outcome::inconclusive) << "not in turns";
  const Replicates two = replicates(2, 1e7, 0.001, random);
  EXPECT_FALSE(judge_recordings(a.view(), two.view(), 0.03, 0));
}

/// Recordings of the same and of one that takes `slower` times as long, one time each; they spread by 1 %.
std::array<std::vector<double>, 2> spread_by_a_hundredth(std::size_t n, double slower, std::mt19937_64& random) {
  std::array<std::vector<double>, 2> times;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t r = 0; r < n; ++r)
      times[s].push_back((s == 0 ? 1e7 : 1e7 * slower) * std::exp(0.01 * gauss(random)));
  return times;
}

model::CycleTimeOutcome judge_each(const std::array<std::vector<double>, 2>& times, double tolerance) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t r = 0; r < times[0].size(); ++r) numbers.push_back(r);
  return judge_recordings({times[0], numbers}, {times[1], numbers}, tolerance, 0).value();
}

TEST(JudgeRecordings, OfTheSameWithoutDriftAreNoChangeAtFivePercentMostly) {
  std::mt19937_64 random(4);
  constexpr int kPairs = 400;
  for (const std::size_t n : {3U, 5U}) {
    int no_change = 0;
    int alarms = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      const Outcome outcome = judge_each(spread_by_a_hundredth(n, 1, random), 0.05).outcome;
      no_change += outcome == Outcome::no_change ? 1 : 0;
      alarms += outcome == Outcome::regression || outcome == Outcome::improvement ? 1 : 0;
    }
    EXPECT_GE(no_change, kPairs / 2) << n;
    EXPECT_LE(alarms, kPairs / 50) << n;
  }
}

/// An effect as large as one comparison says would have been seen, in another one of the same kind.
TEST(JudgeRecordings, WhatIsSaidToBeSeenIsSeenFourTimesOutOfFive) {
  std::mt19937_64 random(5);
  constexpr int kTrials = 4000;
  for (const std::size_t n : {3U, 5U}) {
    int found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const double said = judge_each(spread_by_a_hundredth(n, 1, random), 0.03).smallest_seen;
      const auto other = judge_each(spread_by_a_hundredth(n, 1 + said, random), 0.03);
      found += other.outcome == Outcome::regression ? 1 : 0;
    }
    EXPECT_GE(found, kTrials * 8 / 10) << n;
    EXPECT_LE(found, kTrials * 9 / 10) << n << ": much smaller ones are seen, too";
  }
}

/// The same of two recordings, where 1 % between them is assumed, and true.
TEST(CycleTime, WhatIsSaidToBeSeenIsSeenFourTimesOutOfFive) {
  std::mt19937_64 random(6);
  constexpr int kTrials = 4000;
  const Recordings of_the_same = levels(0.01);
  for (const std::size_t n : {40U, 60U}) {
    int found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto a = of_the_same(random, n);
      const double said = judge_cycle_time(a, of_the_same(random, n)).smallest_seen;
      ASSERT_TRUE(std::isfinite(said));
      const auto base = of_the_same(random, n);
      auto slower = of_the_same(random, n);
      for (double& time : slower) time *= 1 + said;
      found += judge_cycle_time(base, slower).outcome == Outcome::regression ? 1 : 0;
    }
    EXPECT_GE(found, kTrials * 8 / 10) << n;
    EXPECT_LE(found, kTrials * 9 / 10) << n << ": much smaller ones are seen, too";
  }
}

/// And where five earlier recordings tell how much two of the same differ, in both comparisons.
TEST(CycleTime, WithEarlierRecordingsWhatIsSaidToBeSeenIsSeen) {
  std::mt19937_64 random(7);
  constexpr int kTrials = 4000;
  constexpr std::size_t kSteps = 40;
  const Recordings of_the_same = levels(0.01);
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<double, 5> earlier{};
    double mean = 0;
    for (double& log : earlier) mean += (log = 0.01 * gauss(random)) / 5;
    double squares = 0;
    for (const double log : earlier) squares += (log - mean) * (log - mean);
    const CycleTimeOptions options{.measured = MeasuredSpread{std::sqrt(squares / 4), 5}};
    const auto a = of_the_same(random, kSteps);
    const double said = judge_cycle_time(a, of_the_same(random, kSteps), options).smallest_seen;
    const auto base = of_the_same(random, kSteps);
    auto slower = of_the_same(random, kSteps);
    for (double& time : slower) time *= 1 + said;
    found += judge_cycle_time(base, slower, options).outcome == Outcome::regression ? 1 : 0;
  }
  EXPECT_GE(found, kTrials * 8 / 10);
  EXPECT_LE(found, kTrials * 9 / 10) << "much smaller ones are seen, too";
}

/// Two questions: whether these two differ, and whether two of the same do.
TEST(CycleTime, TheseMayDifferThoughNothingIsDecided) {
  const auto a = normal(400, 1e7, 1e5, 1);
  const auto slower = judge_cycle_time(a, normal(400, 1.14e7, 1e5, 2), {.between = 0.05});
  EXPECT_EQ(slower.outcome, Outcome::inconclusive);
  ASSERT_TRUE(slower.these_differ);
  EXPECT_DOUBLE_EQ(slower.these_differ->change, slower.change);
  EXPECT_NEAR(slower.these_differ->change, 0.14, 0.005);
  EXPECT_GT(slower.these_differ->low, 0.13);
  EXPECT_LT(slower.these_differ->high, 0.15);
  EXPECT_LT(slower.low, slower.these_differ->low);
  const auto faster = judge_cycle_time(normal(400, 1.14e7, 1e5, 2), a, {.between = 0.05});
  ASSERT_TRUE(faster.these_differ);
  EXPECT_NEAR(std::log1p(faster.these_differ->low), -std::log1p(slower.these_differ->high), 1e-9);
  EXPECT_FALSE(judge_cycle_time(a, normal(400, 1.14e7, 1e5, 2), {.between = 0.01}).these_differ) << "it is decided";
  EXPECT_FALSE(judge_cycle_time(a, normal(400, 1.02e7, 1e5, 2), {.between = 0.05}).these_differ)
      << "by less than matters";
  EXPECT_FALSE(judge_cycle_time(normal(40, 1e7, 2e6, 1), normal(40, 1.05e7, 2e6, 2)).these_differ)
      << "their steps spread too much to tell";
}

TEST(Overall, TheWorstOfThePhases) {
  const auto with = [](Outcome outcome) {
    model::CycleTimeOutcome o;
    o.outcome = outcome;
    o.cycles = {9, 9};
    return o;
  };
  const model::CycleTimeOutcome without_like_work;
  EXPECT_EQ(overall({without_like_work}), Outcome::inconclusive);
  EXPECT_EQ(overall({with(Outcome::no_change), without_like_work}), Outcome::no_change);
  EXPECT_EQ(overall({}), Outcome::inconclusive);
  EXPECT_EQ(overall({with(Outcome::no_change), with(Outcome::improvement)}), Outcome::improvement);
  EXPECT_EQ(overall({with(Outcome::inconclusive), with(Outcome::improvement)}), Outcome::inconclusive);
  EXPECT_EQ(overall({with(Outcome::regression), with(Outcome::inconclusive)}), Outcome::regression);
}

TEST(StepTimes, AHostThatRunsAheadDoesNotMakeStepsUneven) {
  model::Cycles cycles;
  for (std::uint32_t number = 1; number <= 9; ++number) {
    model::Cycle c;
    c.number = number;
    c.period = number % 4 == 0 ? 3700 : 100;
    const Ns begin = number * Ns{1000};
    c.devices.push_back({0, begin, begin + 1000, 900, 100, 5});
    c.devices.push_back({1, begin, begin + 5000, 100, 4900, 1});
    c.no_work = number == 2 ? 60 : 0;
    cycles.cycles.push_back(c);
  }
  const auto times = step_times(cycles);
  ASSERT_EQ(times.size(), 8U);
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i].time, i == 1 ? 940 : 1000);
}

TEST(StepTimes, TheSlowestRankCountsAndIdleTimeDoesNot) {
  model::Cycles cycles;
  for (std::uint32_t number = 1; number <= 4; ++number)
    for (const std::uint16_t rank : {0, 1}) {
      model::Cycle c;
      c.number = number;
      c.rank = rank;
      c.period = 1000 + 100 * rank;
      c.no_work = rank == 0 ? 300 : 50;
      c.warm_up = number == 1;
      cycles.cycles.push_back(c);
    }
  const auto times = step_times(cycles);
  ASSERT_EQ(times.size(), 2U) << "neither warm-up nor the last";
  EXPECT_EQ(times[0].time, 1050);
}

TEST(StepTimes, OutsideAnAnchorThatTheUserNamedThereMayBeWork) {
  model::Cycles cycles;
  cycles.anchor_given = true;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    model::Cycle c;
    c.number = number;
    c.period = 1000;
    c.no_work = 900;
    cycles.cycles.push_back(c);
  }
  const auto times = step_times(cycles);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].time, 1000);
}

TEST(DriftInside, IsWhatStretchesOfARecordingDifferBy) {
  std::vector<double> even(160, 5.0);
  EXPECT_EQ(drift_inside(even), 0);
  std::vector<double> steps;
  for (int stretch = 0; stretch < 8; ++stretch)
    for (int i = 0; i < 20; ++i) steps.push_back(std::exp(stretch % 2 == 0 ? 0.1 : -0.1));
  EXPECT_NEAR(drift_inside(steps), 0.1 * std::sqrt(8.0 / 7), 1e-9);
  for (double& step : steps) step = std::pow(step, 100);
  EXPECT_EQ(drift_inside(steps), kMostDrift);
  EXPECT_EQ(drift_inside(std::vector<double>(15, 1.0)), 0) << "too few";
}

TEST(CycleTime, AGapThatNoDriftBridgesDecidesWithoutAnInterval) {
  // Each side drifts all the time, so that no neighbours are independent.
  const auto drifting = [](double from, double to) {
    std::vector<double> values;
    for (int i = 0; i < 8; ++i) values.push_back(from + (to - from) * i / 7);
    return values;
  };
  EXPECT_EQ(judge_cycle_time(drifting(100, 110), drifting(210, 200), {0.03, 0.05, 2}).outcome, Outcome::regression);
  EXPECT_EQ(judge_cycle_time(drifting(210, 200), drifting(100, 110), {0.03, 0.05, 2}).outcome, Outcome::improvement);
  EXPECT_EQ(judge_cycle_time(drifting(100, 150), drifting(160, 240), {0.03, 0.05, 2}).outcome, Outcome::inconclusive);
}

}  // namespace
}  // namespace culprit::compare
