#include "compare/earlier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compare/compare_runs.h"
#include "make_recording.h"

namespace culprit::compare {
namespace {

using model::Outcome;
using model::Recording;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SpreadAmong, NeedsThree) {
  EXPECT_FALSE(spread_among(std::vector{1.0, 2.0}).has_value());
  const auto spread = spread_among(std::vector{1.0, 2.0, 3.0});
  ASSERT_TRUE(spread.has_value());
  EXPECT_DOUBLE_EQ(spread->deviation, 1);
  EXPECT_EQ(spread->recordings, 3U);
}

std::vector<WorkedTime> steps_of(double time, std::int32_t requests = 4, std::size_t n = 20) {
  return std::vector<WorkedTime>(n, WorkedTime{{requests, -1}, time, 0});
}

TEST(SpreadOfSteps, IsThatOfMeanLogarithms) {
  const auto spread =
      spread_of_steps(steps_of(7), std::vector{steps_of(1), steps_of(std::exp(1.0)), steps_of(std::exp(2.0))});
  ASSERT_TRUE(spread.has_value());
  EXPECT_NEAR(spread->deviation, 1, 1e-9);
}

TEST(SpreadOfSteps, OtherMixesOfWorkAreNoSpread) {
  const auto mixed = [](std::size_t of_four, std::size_t of_eight) {
    std::vector<WorkedTime> steps = steps_of(100, 4, of_four);
    const std::vector<WorkedTime> more = steps_of(200, 8, of_eight);
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  };
  const auto spread = spread_of_steps(mixed(20, 20), std::vector{mixed(30, 10), mixed(10, 30), mixed(20, 20)});
  ASSERT_TRUE(spread.has_value());
  EXPECT_NEAR(spread->deviation, 0, 1e-9);
}

TEST(SpreadOfSteps, RecordingsWithoutLikeStepsDoNotCount) {
  EXPECT_FALSE(spread_of_steps(steps_of(7), std::vector{steps_of(1), steps_of(2), steps_of(3, 9)}).has_value());
}

Recording lasting(Ns period, std::uint64_t digest) {
  Recording r = make_recording(std::vector<Ns>(40, 100 * period));
  r.digest = digest;
  return r;
}

std::vector<Recording> history(std::initializer_list<Ns> periods) {
  std::vector<Recording> list;
  for (const Ns period : periods) list.push_back(lasting(period, 100 + list.size()));
  return list;
}

model::RunComparison compared(Ns base, Ns candidate, const std::vector<Recording>& earlier) {
  std::vector<Recording> a, b;
  a.push_back(lasting(base, 1));
  b.push_back(lasting(candidate, 2));
  auto result = compare_runs(std::move(a), std::move(b), {}, earlier);
  EXPECT_TRUE(result.ok());
  return std::move(*result);
}

TEST(Earlier, SteadyOnesMakeASmallDifferenceSure) {
  EXPECT_EQ(compared(1'000'000, 1'060'000, {}).outcome, Outcome::inconclusive) << "hosts are assumed to differ by 5 %";
  const auto earlier = history({2'000'000, 2'004'000, 1'996'000, 2'002'000});
  const model::RunComparison c = compared(1'000'000, 1'060'000, earlier);
  EXPECT_EQ(c.outcome, Outcome::regression) << "of another level, which does not count";
  EXPECT_THAT(c.assumptions, IsEmpty());
  ASSERT_EQ(c.cycle_times.size(), 1U);
  EXPECT_EQ(c.cycle_times[0].earlier, 4U);
  EXPECT_NEAR(c.cycle_times[0].between, 0.0017, 0.0002);
  EXPECT_EQ(compared(1'000'000, 1'001'000, earlier).outcome, Outcome::no_change);
}

TEST(Earlier, UnsteadyOnesKeepADifferenceUnsure) {
  const auto earlier = history({1'000'000, 1'300'000, 800'000, 1'100'000});
  EXPECT_EQ(compared(1'000'000, 1'300'000, earlier).outcome, Outcome::inconclusive);
}

TEST(Earlier, TheSidesThemselvesAndOthersAreLeftOut) {
  std::vector<Recording> earlier = history({1'000'000, 1'001'000, 1'002'000});
  earlier.push_back(lasting(1'000'000, 1));  // the baseline
  Recording other = lasting(1'000'000, 55);
  other.facts.gpu_work = true;
  earlier.push_back(std::move(other));
  const model::RunComparison c = compared(1'000'000, 1'001'000, earlier);
  EXPECT_EQ(c.cycle_times[0].earlier, 3U);
  EXPECT_THAT(c.notes, testing::IsSupersetOf({HasSubstr("1 of the earlier recordings is left out: given twice"),
                                              HasSubstr("1 of the earlier recordings is left out: ")}));
}

/// CPU model, product and host name; empty: not told.
using Machine = std::array<std::string, 3>;

Recording on(const Machine& machine, Ns period, std::uint64_t digest) {
  constexpr std::array kKeys = {"env.cpu.model", "env.machine.product", "env.hostname"};
  Recording r = lasting(period, digest);
  for (std::size_t i = 0; i < kKeys.size(); ++i)
    if (!machine.at(i).empty()) r.environment[kKeys.at(i)].insert(machine.at(i));
  return r;
}

TEST(Earlier, ThoseOfAnotherMachineAreLeftOut) {
  const Machine here = {"Zen", "X1", "a"};
  const auto with_one = [&](const Machine& machine, Ns period) {
    std::vector<Recording> a, b, earlier;
    a.push_back(on(here, 1'000'000, 1));
    b.push_back(on(here, 1'001'000, 2));
    earlier.push_back(on(here, 1'000'000, 50));
    earlier.push_back(on({}, 1'001'000, 51));
    earlier.push_back(on({"Zen", "", "a"}, 999'000, 52));
    earlier.push_back(on(machine, period, 53));
    auto c = compare_runs(std::move(a), std::move(b), {}, earlier);
    EXPECT_TRUE(c.ok());
    return std::move(*c);
  };
  const model::RunComparison same = with_one(here, 1'000'500);
  EXPECT_EQ(same.cycle_times[0].earlier, 4U) << "what is not told differs from nothing";
  EXPECT_THAT(same.notes, testing::Not(testing::Contains(HasSubstr("another machine"))));
  const std::array<std::pair<Machine, const char*>, 3> others = {
      {{{"Xeon", "X1", "a"}, "(CPU model Xeon instead of Zen)"},
       {{"Zen", "X2", "a"}, "(machine X2 instead of X1)"},
       {{"Zen", "", "b"}, "(host name b instead of a)"}}};
  for (const auto& [machine, why] : others) {
    const model::RunComparison c = with_one(machine, 3'000'000);
    EXPECT_EQ(c.cycle_times[0].earlier, 3U) << why;
    EXPECT_LT(c.cycle_times[0].between, 0.002) << why;
    EXPECT_THAT(c.notes, testing::Contains(
                             AllOf(HasSubstr("1 of the earlier recordings is left out: of another"), HasSubstr(why))));
  }
}

TEST(Earlier, BetweenTwoMachinesNoneTells) {
  std::vector<Recording> a, b;
  std::vector<Recording> earlier = history({1'000'000, 1'001'000, 999'000});
  a.push_back(lasting(1'000'000, 1));
  b.push_back(lasting(1'060'000, 2));
  a[0].environment["env.hostname"] = {"a"};
  b[0].environment["env.hostname"] = {"b"};
  for (Recording& r : earlier) r.environment["env.hostname"] = {"a"};
  const auto c = compare_runs(std::move(a), std::move(b), {}, earlier);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->cycle_times[0].earlier, 0U);
  EXPECT_EQ(c->outcome, Outcome::inconclusive);
  EXPECT_THAT(c->notes, testing::Contains(HasSubstr("3 of the earlier recordings are left out: of another machine")));
}

TEST(Earlier, TwoAreTooFewAndItIsSaid) {
  const model::RunComparison c = compared(1'000'000, 1'060'000, history({1'000'000, 1'001'000}));
  EXPECT_EQ(c.cycle_times[0].earlier, 0U);
  EXPECT_THAT(c.notes, testing::Contains(HasSubstr("takes 3 earlier ones to measure, 2 can be used")));
  EXPECT_THAT(c.assumptions, testing::SizeIs(1));
}

TEST(Earlier, StepsThatOnlyOneSideHasTellNothing) {
  const auto of_work = [](std::uint64_t digest, std::size_t of_four, std::size_t of_eight, double wild) {
    Recording r = make_recording(std::vector<Ns>(of_four + of_eight, 100'000'000));
    r.digest = digest;
    for (std::size_t i = 0; i < r.cycles.cycles.size(); ++i) {
      r.cycles.cycles[i].workload.batch = r.profile.cycles[i].workload.batch = i < of_four ? 4 : 8;
      if (i >= of_four) r.cycles.cycles[i].period = static_cast<Ns>(2e8 * wild);
    }
    return r;
  };
  const auto between = [&](bool swapped) {
    std::vector<Recording> a, b, earlier;
    a.push_back(of_work(1, 40, 0, 1));
    b.push_back(of_work(2, 40, 20, 1));
    for (std::size_t i = 0; i < 4; ++i) earlier.push_back(of_work(10 + i, 40, 20, 1 + 0.5 * static_cast<double>(i)));
    if (swapped) std::swap(a, b);
    const auto c = compare_runs(std::move(a), std::move(b), {}, earlier);
    EXPECT_TRUE(c.ok());
    return c->cycle_times.at(0).between;
  };
  EXPECT_NEAR(between(false), 0, 1e-6);
  EXPECT_NEAR(between(true), 0, 1e-6);
}

TEST(Earlier, SwappedSidesGiveTheMirroredAnswer) {
  const auto earlier = history({1'000'000, 1'010'000, 990'000, 1'005'000});
  const auto there = compared(1'000'000, 1'200'000, earlier).cycle_times[0];
  const auto back = compared(1'200'000, 1'000'000, earlier).cycle_times[0];
  EXPECT_EQ(there.outcome, Outcome::regression);
  EXPECT_EQ(back.outcome, Outcome::improvement);
  EXPECT_NEAR((1 + there.low) * (1 + back.high), 1, 1e-9);
}

/// One recording against several, begun so many seconds later than these.
model::RunComparison one_of_several(std::initializer_list<Ns> base, Ns candidate, bool swapped = false,
                                    Ns seconds_apart = 60) {
  constexpr Ns kToday = 1'700'000'000;
  const auto begun = [](Recording r, Ns second) {
    for (model::ProfileCycle& cycle : r.profile.cycles) cycle.begin += second * 1'000'000'000;
    return r;
  };
  std::vector<Recording> a, b;
  for (const Ns period : base) a.push_back(begun(lasting(period, 10 + a.size()), kToday));
  b.push_back(begun(lasting(candidate, 2), kToday + seconds_apart));
  if (swapped) std::swap(a, b);
  auto c = compare_runs(std::move(a), std::move(b));
  EXPECT_TRUE(c.ok());
  return std::move(*c);
}

TEST(Earlier, RecordingsOfOneSideTellItToo) {
  const model::RunComparison c = one_of_several({1'000'000, 1'001'000, 999'000}, 1'060'000);
  EXPECT_EQ(c.outcome, Outcome::regression);
  EXPECT_THAT(c.assumptions, IsEmpty());
  EXPECT_EQ(c.cycle_times[0].earlier, 3U);
  EXPECT_EQ(c.cycle_times[0].earlier_side, 0U);
  EXPECT_NEAR(c.cycle_times[0].between, 0.001, 1e-5);
  const model::RunComparison back = one_of_several({1'000'000, 1'001'000, 999'000}, 1'060'000, true);
  EXPECT_EQ(back.outcome, Outcome::improvement);
  EXPECT_EQ(back.cycle_times[0].earlier_side, 1U);
  EXPECT_NEAR((1 + c.cycle_times[0].low) * (1 + back.cycle_times[0].high), 1, 1e-9);
  EXPECT_EQ(one_of_several({1'000'000, 1'300'000, 800'000}, 1'300'000).outcome, Outcome::inconclusive);
}

TEST(Earlier, TwoOfOneSideOrThoseOfAnotherHourTellNothing) {
  const model::RunComparison two = one_of_several({1'000'000, 1'001'000}, 1'060'000);
  EXPECT_EQ(two.cycle_times[0].earlier, 0U);
  EXPECT_EQ(two.outcome, Outcome::inconclusive);
  const model::RunComparison apart = one_of_several({1'000'000, 1'001'000, 999'000}, 1'060'000, false, 3600);
  EXPECT_EQ(apart.cycle_times[0].earlier, 0U);
  EXPECT_FALSE(apart.cycle_times[0].earlier_side.has_value());
  EXPECT_EQ(apart.outcome, Outcome::inconclusive);
  EXPECT_THAT(apart.assumptions, testing::SizeIs(1));
}

TEST(Earlier, OfFewCyclesThereIsAnInterval) {
  std::vector<Recording> a, b;
  a.push_back(make_recording(std::vector<Ns>(9, 1'000'000)));
  b.push_back(make_recording(std::vector<Ns>(9, 1'100'000)));
  const auto c = compare_runs(std::move(a), std::move(b), {}, history({1'000'000, 1'005'000, 995'000, 1'002'000}));
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->outcome, Outcome::regression);
  EXPECT_GT(c->cycle_times[0].low, 0.03);
}

/// Of recordings of the same that differ by `spread`, compared with so many earlier ones: how often a difference is
/// called, and how often the interval holds 0.
std::pair<double, double> simulate(double spread, std::size_t earlier_ones, int steps_of_one) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> level(0, spread);
  std::normal_distribution<double> noise(0, 0.04);
  const auto steps = [&] {
    std::vector<double> times;
    const double mean = level(random);
    for (int i = 0; i < steps_of_one; ++i) times.push_back(std::exp(mean + noise(random)));
    return times;
  };
  constexpr int kPairs = 1000;
  int called = 0, held = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::vector<double> means;
    for (std::size_t i = 0; i < earlier_ones; ++i) {
      double sum = 0;
      for (const double t : steps()) sum += std::log(t) / steps_of_one;
      means.push_back(sum);
    }
    const auto o = judge_cycle_time(steps(), steps(), {.measured = spread_among(means)});
    called += o.outcome == Outcome::regression || o.outcome == Outcome::improvement ? 1 : 0;
    held += std::isnan(o.low) || (o.low <= 0 && o.high >= 0) ? 1 : 0;
  }
  return {called / static_cast<double>(kPairs), held / static_cast<double>(kPairs)};
}

TEST(Earlier, OfRecordingsOfTheSameHardlyAnyAreCalledDifferent) {
  for (const double spread : {0.0, 0.01, 0.05, 0.15})
    for (const std::size_t earlier_ones : {3U, 5U, 16U})
      for (const int steps_of_one : {4, 8, 60}) {
        const auto [called, held] = simulate(spread, earlier_ones, steps_of_one);
        EXPECT_LE(called, 0.05) << spread << " " << earlier_ones << " " << steps_of_one;
        EXPECT_GE(held, 0.93) << spread << " " << earlier_ones << " " << steps_of_one;
      }
}

}  // namespace
}  // namespace culprit::compare
