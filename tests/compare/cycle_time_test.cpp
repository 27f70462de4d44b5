#include "compare/cycle_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

/// Recordings of the same, each with its own level (1 %) and noise (4 %): false alarms stay rare.
TEST(CycleTime, NormalAgainstNormalStaysSilent) {
  int alarms = 0;
  int found = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 random(static_cast<std::uint64_t>(run) * 7 + 1);
    std::normal_distribution<double> level(0, 0.01);
    const auto seed = static_cast<std::uint64_t>(run) * 3 + 1000;
    const auto a = normal(20, 1e7 * std::exp(level(random)), 4e5, seed);
    const auto b = normal(20, 1e7 * std::exp(level(random)), 4e5, seed + 1);
    const auto c = normal(20, 1.15e7 * std::exp(level(random)), 4e5, seed + 2);
    const Outcome same = judge_cycle_time(a, b).outcome;
    alarms += same == Outcome::regression || same == Outcome::improvement ? 1 : 0;
    found += judge_cycle_time(a, c).outcome == Outcome::regression ? 1 : 0;
  }
  EXPECT_LE(alarms, kRuns / 100);
  EXPECT_GE(found, kRuns * 9 / 10);
}

TEST(Overall, TheWorstOfThePhases) {
  const auto with = [](Outcome outcome) {
    model::CycleTimeOutcome o;
    o.outcome = outcome;
    return o;
  };
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

}  // namespace
}  // namespace culprit::compare
