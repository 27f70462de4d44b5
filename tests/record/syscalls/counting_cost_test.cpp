#include "record/syscalls/counting_cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "record/collector/collector.h"
#include "support/cpu_time.h"

namespace culprit::record::syscalls {
namespace {

constexpr Ns kOneMs = 1'000'000;

TEST(CountingCost, FewCallsAreNotCorrected) {
  EXPECT_EQ(taken_by_counting(1000, 200, 25 * kOneMs), 0);
  EXPECT_EQ(taken_by_counting(1000, 200, 0), 0);
}

TEST(CountingCost, TimeOfAllCalls) {
  EXPECT_DOUBLE_EQ(taken_by_counting(50'000, 250, 25 * kOneMs), 12.5 * kOneMs);
  EXPECT_DOUBLE_EQ(taken_by_counting(1'000'000, 250, 25 * kOneMs), 250 * kOneMs);
}

TEST(CountingCost, WhoIsBusyMakesAsManyMoreAsTheTimeThatCountingTook) {
  // 400 ns a call and 200 for counting it: 2 in the time of 3.
  const Unseen unseen = unseen_calls(10 * kOneMs, {30 * kOneMs, 300 * kOneMs});
  EXPECT_DOUBLE_EQ(unseen.calls, 10 * 1.5);
  EXPECT_DOUBLE_EQ(unseen.doubt, 10 * 1.5 * 0.25 * 0.5);
}

TEST(CountingCost, TimeWithoutACpuIsNoTimeForCalls) {
  // The same thread with a CPU for a third of the window, and for two thirds of the rest: twice as much for every call.
  const Unseen all = unseen_calls(10 * kOneMs, {30 * kOneMs, 300 * kOneMs});
  const Unseen third = unseen_calls(10 * kOneMs / 3.0, {10 * kOneMs, 200 * kOneMs});
  EXPECT_DOUBLE_EQ(third.calls, 2 * all.calls);
}

TEST(CountingCost, WhoWaitsForOthersMakesAsManyAsBefore) {
  // It ran 2 ms of 20 for itself, and 1 more because it was counted; outside 2 of every 20.
  EXPECT_DOUBLE_EQ(unseen_calls(kOneMs, {3 * kOneMs, 20 * kOneMs}).calls, 10);
}

TEST(CountingCost, MoreThanAllOfTheTimeIsNoBasis) {
  EXPECT_DOUBLE_EQ(unseen_calls(100 * kOneMs, {20 * kOneMs, 20 * kOneMs}).calls, 1 / (1 - kMostTaken));
}

TEST(CountingCost, NothingTakenNoDoubt) {
  EXPECT_EQ(unseen_calls(0, {20 * kOneMs, 60 * kOneMs}).calls, 3);
  EXPECT_EQ(unseen_calls(0, {20 * kOneMs, 60 * kOneMs}).doubt, 0);
}

TEST(CountingCost, WhoDidNotRunInsideOrOutsideStandsForItself) {
  EXPECT_EQ(unseen_calls(kOneMs, {0, kOneMs}).calls, 0);
  EXPECT_EQ(unseen_calls(kOneMs, {kOneMs, 0}).calls, 0);
  EXPECT_EQ(unseen_calls(kOneMs, {-1, -1}).calls, 0);
}

TEST(CountingCost, RunningTimeOfText) {
  EXPECT_EQ(parse_running("100 20 3\n"), 100);
  for (const char* text : {"x 1 2", "-1 1 2", ""}) EXPECT_FALSE(parse_running(text).has_value()) << text;
}

/// How long it took.
Ns spin(Ns length) {
  const Ns begin = monotonic_now();
  Ns now = begin;
  while (now - begin < length) now = monotonic_now();
  return now - begin;
}

const BusyThreads::Thread kOwn(getpid(), gettid());

/// A period in which this thread runs for so long before and in its window; the next one has begun. `took`: as much as
/// it can have run.
std::optional<Ran> period(BusyThreads& threads, Ns outside, Ns inside, Ran* took = nullptr) {
  const auto rest = [](Ns ran) { usleep(static_cast<useconds_t>((40 * kOneMs - ran) / 1000)); };
  Ran spun;
  spun.outside = spin(outside);
  rest(outside);
  threads.window_opened(monotonic_now());
  spun.inside = spin(inside);
  if (took != nullptr) *took = spun;
  rest(inside);
  threads.window_closed(monotonic_now());
  threads.period_ended(monotonic_now());
  auto ran = threads.ran(kOwn);
  threads.period_begins(false);
  return ran;
}

class BusyThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RunClock(gettid()).read()) GTEST_SKIP() << "the kernel gives no clock of a thread (perf_event_open)";
  }
};

TEST_F(BusyThreadsTest, KnownFromTheSecondPeriodOnAndForgottenUnlessWatched) {
  BusyThreads threads;
  threads.watch(kOwn);
  EXPECT_FALSE(period(threads, 0, 0).has_value());
  for (int i = 1; i < BusyThreads::kPeriods; ++i) EXPECT_TRUE(period(threads, 0, 0).has_value()) << i;
  EXPECT_FALSE(period(threads, 0, 0).has_value());
}

TEST_F(BusyThreadsTest, InsideOfTheWindowAndOutside) {
  BusyThreads threads;
  threads.watch(kOwn);
  period(threads, 0, 0);
  Ran took;
  const auto ran = period(threads, 35 * kOneMs, 20 * kOneMs, &took);
  ASSERT_TRUE(ran.has_value());
  // As much as it had a CPU for, which others want, too.
  EXPECT_TRUE(0 < ran->inside && ran->inside <= took.inside + 5 * kOneMs) << ran->inside;
  EXPECT_TRUE(0 < ran->outside && ran->outside <= took.outside + 5 * kOneMs) << ran->outside;
}

TEST_F(BusyThreadsTest, WhoComesLateToAWindowSawAPartOfIt) {
  // The machine may take a CPU from it, which is no time of the thread; not at each turn.
  constexpr int kTurns = 10;
  bool near = false;
  for (int turn = 0; turn < kTurns && !near; ++turn) {
    BusyThreads threads;
    threads.watch(kOwn);
    period(threads, 0, 0);
    const Ns begin = monotonic_now();
    threads.window_opened(begin, [&] { return begin + 15 * kOneMs; });
    const double ran = test::cpu_seconds([] { spin(15 * kOneMs); });
    threads.window_closed(begin + 40 * kOneMs);
    threads.period_ended(begin + 100 * kOneMs);
    ASSERT_TRUE(threads.ran(kOwn).has_value());
    const auto inside = static_cast<double>(threads.ran(kOwn)->inside);
    EXPECT_GE(inside, 0.9 * 1.6e9 * ran);
    near = inside <= 1.1 * 1.6e9 * ran;
  }
  EXPECT_TRUE(near);
}

TEST_F(BusyThreadsTest, WhoComesTooLateAssumesWhatTheRestIsLike) {
  BusyThreads threads;
  threads.watch(kOwn);
  const Ns begin = monotonic_now();
  threads.period_ended(begin);
  threads.period_begins(false);
  threads.window_opened(begin + 10 * kOneMs, [&] { return begin + 25 * kOneMs; });
  threads.window_closed(begin + 30 * kOneMs);
  spin(20 * kOneMs);
  threads.period_ended(begin + 100 * kOneMs);
  const auto ran = threads.ran(kOwn);
  ASSERT_TRUE(ran.has_value());
  EXPECT_GT(ran->inside, 0);
  EXPECT_NEAR(static_cast<double>(ran->outside), 4 * static_cast<double>(ran->inside), 10);
}

TEST_F(BusyThreadsTest, AWindowWithoutItTellsNothingAndTheNextOneStandsForBoth) {
  BusyThreads threads;
  threads.watch(kOwn);
  period(threads, 0, 0);
  const auto without = period(threads, 35 * kOneMs, 0);
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->outside, 0);
  const auto with = period(threads, 0, 30 * kOneMs);
  ASSERT_TRUE(with.has_value());
  EXPECT_GT(with->outside, kOneMs);
  const auto after = period(threads, 0, 30 * kOneMs);
  ASSERT_TRUE(after.has_value());
  EXPECT_LT(after->outside, with->outside);
}

TEST_F(BusyThreadsTest, WhoIsGoneIsUnknown) {
  const BusyThreads::Thread nobody(1 << 30, 1 << 30);
  BusyThreads threads;
  threads.watch(nobody);
  threads.watch(kOwn);
  period(threads, 0, 0);
  EXPECT_TRUE(period(threads, 0, 0).has_value());
  EXPECT_FALSE(threads.ran(nobody).has_value());
}

TEST_F(BusyThreadsTest, APeriodWithoutAWindowIsUnknown) {
  BusyThreads threads;
  threads.watch(kOwn);
  for (int i = 0; i < 2; ++i) {
    threads.period_ended(monotonic_now());
    EXPECT_FALSE(threads.ran(kOwn).has_value());
    threads.period_begins(false);
  }
}

TEST_F(BusyThreadsTest, AWindowThatIsThePeriodHasNothingOutside) {
  BusyThreads threads;
  threads.watch(kOwn);
  threads.period_ended(monotonic_now());
  threads.period_begins(true);
  spin(5 * kOneMs);
  threads.period_ended(monotonic_now());
  ASSERT_TRUE(threads.ran(kOwn).has_value());
  EXPECT_EQ(threads.ran(kOwn)->outside, 0);
}

}  // namespace
}  // namespace culprit::record::syscalls
