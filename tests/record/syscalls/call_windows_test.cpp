#include "record/syscalls/call_windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

namespace culprit::record::syscalls {
namespace {

constexpr Ns kMillisecond = 1'000'000;

struct Outcome {
  double calls = 0;
  double share = 0;
  double timed = 0;
  std::optional<double> error;
  bool estimates = false;
};

/// A program that makes rate(t) calls a second is looked at every millisecond for `length`.
Outcome simulate(const std::function<double(Ns)>& rate, Ns length, std::uint32_t seed, double few = 0) {
  CallWindows windows(0, seed, few);
  Outcome outcome;
  double seen = 0;
  bool open = false;
  for (Ns now = 0; now < length; now += kMillisecond) {
    if (open) seen += rate(now) * 1e-3;
    const auto due = windows.due(now);
    if (due == CallWindows::Due::open) windows.opened(now);
    if (due == CallWindows::Due::close) windows.closed(now);
    open = windows.is_open();
    if (due != CallWindows::Due::count) continue;
    windows.end_period(now);
    const double calls = seen * windows.scale();
    outcome.calls += calls;
    windows.counted(now, calls);
    seen = 0;
  }
  if (windows.is_open()) windows.closed(length);
  if (windows.end_recording(length)) outcome.calls += seen * windows.scale();
  outcome.share = windows.share(length);
  outcome.timed = windows.timed_share(length);
  outcome.error = windows.error();
  outcome.estimates = windows.estimates();
  return outcome;
}

TEST(CallWindows, OneEleventhOfTheTimeIsCountedAndAThirdOfThatTimed) {
  const Outcome outcome = simulate([](Ns) { return 1000.0; }, 100'000 * kMillisecond, 1);
  EXPECT_NEAR(outcome.share, 0.09, 0.004);
  EXPECT_NEAR(outcome.timed, 0.03, 0.002);
}

TEST(CallWindows, OfASteadyProgramTheNumberIsRightAndKnownToBe) {
  const Outcome outcome = simulate([](Ns) { return 1000.0; }, 10'000 * kMillisecond, 7);
  EXPECT_NEAR(outcome.calls, 10'000, 300);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_LT(*outcome.error, 0.02);
}

TEST(CallWindows, TheStatedErrorHoldsTheTruthInNearlyAllRuns) {
  // Bursts of 70 ms in every 330: no rhythm of the windows.
  const auto bursts = [](Ns now) { return now / kMillisecond % 330 < 70 ? 20'000.0 : 500.0; };
  constexpr Ns kLength = 30'000 * kMillisecond;
  double truth = 0;
  for (Ns now = 0; now < kLength; now += kMillisecond) truth += bursts(now) * 1e-3;
  int held = 0;
  double sum = 0;
  constexpr int kRuns = 200;
  for (std::uint32_t seed = 1; seed <= kRuns; ++seed) {
    const Outcome outcome = simulate(bursts, kLength, seed);
    ASSERT_TRUE(outcome.error.has_value());
    sum += outcome.calls;
    held += std::abs(outcome.calls / truth - 1) <= *outcome.error ? 1 : 0;
  }
  EXPECT_NEAR(sum / kRuns / truth, 1, 0.03);  // three times its own error: one run is 14 % off
  EXPECT_GT(held, kRuns * 9 / 10);
}

TEST(CallWindows, ALoadThatBeginsAndEndsIsNoError) {
  const auto burst = [](Ns now) { return now / kMillisecond / 1000 % 10 < 5 ? 100'000.0 : 0.0; };
  const Outcome outcome = simulate(burst, 20'000 * kMillisecond, 11);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_LT(*outcome.error, 0.1);
  EXPECT_NEAR(outcome.calls / 1'000'000, 1, *outcome.error);
}

TEST(CallWindows, WhatIsShorterThanAWindowIsCountedWhole) {
  CallWindows windows(0, 1);
  EXPECT_EQ(windows.due(0), CallWindows::Due::open);
  windows.opened(0);
  EXPECT_TRUE(windows.timed());
  windows.closed(20 * kMillisecond);
  windows.end_period(20 * kMillisecond);
  EXPECT_DOUBLE_EQ(windows.scale(), 1);
}

TEST(CallWindows, ARecorderThatComesLateHasAWholeWindow) {
  for (const double few : {0.0, 2000.0}) {
    CallWindows windows(0, 1, few);
    windows.opened(0);
    if (few == 0) windows.closed(CallWindows::kWindow);
    windows.end_period(CallWindows::kPeriod);
    windows.counted(CallWindows::kPeriod, 1);
    const Ns late = 10 * CallWindows::kPeriod;
    if (!windows.is_open()) windows.opened(late);
    Ns now = late;
    for (; windows.due(now) != CallWindows::Due::count; now += kMillisecond)
      if (windows.due(now) == CallWindows::Due::close) windows.closed(now);
    windows.end_period(now);
    EXPECT_GE(windows.length(), CallWindows::kWindow);
    EXPECT_LE(windows.scale(), 10.0 * CallWindows::kPeriod / CallWindows::kWindow);
    EXPECT_GT(windows.scale(), 0.99);
  }
}

TEST(CallWindows, ProgramsThatEndInTheFirstPeriodAreCountedAsTheyAre) {
  CallWindows windows(0, 1, 2000);
  windows.opened(20 * kMillisecond);
  EXPECT_EQ(windows.scale(), 1) << "a thread that ends tells what it did at once";
}

TEST(CallWindows, OneThatHasJustBegunWhenTheRecordingEndsIsNone) {
  const auto ended = [](Ns open) {
    CallWindows windows(0, 1);
    windows.opened(0);
    windows.closed(CallWindows::kWindow);
    windows.end_period(CallWindows::kPeriod);
    windows.counted(CallWindows::kPeriod, 1);
    const Ns at = windows.next();
    windows.opened(at);
    windows.closed(at + open);
    return windows.end_recording(at + open);
  };
  EXPECT_FALSE(ended(1));
  EXPECT_FALSE(ended(2 * kMillisecond));
  EXPECT_TRUE(ended(20 * kMillisecond));
}

TEST(CallWindows, WhatIsWrongInTheSameWayAlwaysIsPartOfTheError) {
  const auto error_with = [](double doubt) {
    CallWindows windows(0, 1);
    Ns now = 0;
    Ns begin = 0;
    windows.opened(now);
    for (int period = 0; period < 8; ++period) {
      while (windows.due(now) != CallWindows::Due::count) {
        if (windows.due(now) == CallWindows::Due::open) windows.opened(now);
        if (windows.due(now) == CallWindows::Due::close) windows.closed(now);
        now += kMillisecond;
      }
      windows.end_period(now);
      const double calls = 1e-6 * static_cast<double>(now - begin);
      windows.counted(now, calls, doubt * calls);
      begin = now;
    }
    return windows.error().value_or(-1);
  };
  EXPECT_NEAR(error_with(0), 0, 1e-9);
  EXPECT_NEAR(error_with(0.1), 0.1, 1e-9);
}

TEST(CallWindows, FewWindowsSayNothingAboutTheError) {
  EXPECT_FALSE(simulate([](Ns) { return 1000.0; }, 900 * kMillisecond, 3).error.has_value());
}

TEST(CallWindows, FewCallsAreAllCountedAndTimed) {
  const Outcome outcome = simulate([](Ns) { return 1000.0; }, 10'000 * kMillisecond, 1, 2000);
  EXPECT_NEAR(outcome.share, 1, 0.01);
  EXPECT_NEAR(outcome.timed, 1, 0.01);
  EXPECT_NEAR(outcome.calls, 10'000, 20);
  EXPECT_FALSE(outcome.estimates);
  EXPECT_FALSE(outcome.error.has_value());
}

TEST(CallWindows, ManyCallsAreCountedInWindows) {
  const Outcome outcome = simulate([](Ns) { return 3000.0; }, 100'000 * kMillisecond, 1, 2000);
  EXPECT_NEAR(outcome.share, 0.09, 0.005);
  EXPECT_NEAR(outcome.calls, 300'000, 3000);
  EXPECT_TRUE(outcome.estimates);
}

TEST(CallWindows, WhereOneThatWasOpenIsShutACallStandsForMoreBeforeItIs) {
  CallWindows windows(0, 1, 1000);
  windows.opened(0);
  windows.end_period(CallWindows::kPeriod);
  EXPECT_EQ(windows.scale(), 1);
  windows.counted(CallWindows::kPeriod, 10'000);
  ASSERT_TRUE(windows.is_open());
  EXPECT_DOUBLE_EQ(windows.scale(), 250.0 / 30);
  windows.closed(CallWindows::kPeriod + CallWindows::kTimedWindow);
  EXPECT_DOUBLE_EQ(windows.scale(), 250.0 / 30);
}

TEST(CallWindows, WhenCallsBecomeFewAllAreCountedAgain) {
  const auto burst = [](Ns now) { return now / kMillisecond / 1000 == 3 ? 10'000.0 : 100.0; };
  const Outcome outcome = simulate(burst, 10'000 * kMillisecond, 5, 2000);
  EXPECT_GT(outcome.share, 0.8);
  EXPECT_LT(outcome.share, 0.95);
  EXPECT_NEAR(outcome.calls, 10'900, 300);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_LT(*outcome.error, 0.7);
}

TEST(CallWindows, WhatEndsBeforeTheFirstWindowIsAnEstimate) {
  CallWindows windows(0, 1, 50'000);
  windows.opened(0);
  windows.end_period(CallWindows::kPeriod);
  windows.counted(CallWindows::kPeriod, 40'000);
  EXPECT_FALSE(windows.estimates());
  windows.end(CallWindows::kPeriod + 10'000'000);
  EXPECT_TRUE(windows.estimates());
}

TEST(CallWindows, WhatWasLookedAtAlwaysIsNoEstimateAtTheEnd) {
  CallWindows windows(0, 1, 50'000);
  windows.opened(0);
  windows.end_period(CallWindows::kPeriod);
  windows.counted(CallWindows::kPeriod, 400);
  windows.end(CallWindows::kPeriod + 10'000'000);
  EXPECT_FALSE(windows.estimates());
}

}  // namespace
}  // namespace culprit::record::syscalls
