#include "record/syscalls/counting_cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "record/collector/collector.h"

namespace culprit::record::syscalls {
namespace {

TEST(CountingCost, FewCallsAreNotCorrected) {
  EXPECT_EQ(taken_by_counting(1000, 200, 25'000'000), 0);
  EXPECT_EQ(taken_by_counting(1000, 200, 0), 0);
}

TEST(CountingCost, ShareOfTheWindow) {
  EXPECT_DOUBLE_EQ(taken_by_counting(50'000, 250, 25'000'000), 0.5);
  EXPECT_DOUBLE_EQ(taken_by_counting(1'000'000, 250, 25'000'000), 10);
}

TEST(CountingCost, WhoIsBusyMakesAsManyMoreAsTheTimeThatCountingTook) {
  // 400 ns a call and 200 for counting it: 2 in the time of 3.
  EXPECT_DOUBLE_EQ(unseen_calls(200.0 / 600.0, Busy{1, 0}).factor, 1.5);
  EXPECT_DOUBLE_EQ(unseen_calls(200.0 / 600.0, std::nullopt).factor, 1.5);
  EXPECT_GT(unseen_calls(0.3, Busy{1, 0}).doubt, 0);
}

TEST(CountingCost, TimeInTheRunQueueIsNoTimeForCalls) {
  // The same thread with a CPU for half of the window makes half as many calls in it.
  EXPECT_DOUBLE_EQ(unseen_calls(0.5 * 200.0 / 600.0, Busy{0.5, 0.5}).factor, 1.5);
}

TEST(CountingCost, MoreThanAllOfTheTimeIsNoBasis) {
  EXPECT_DOUBLE_EQ(unseen_calls(10, Busy{1, 0}).factor, 1 / (1 - kMostTaken));
}

TEST(CountingCost, WhoWaitsForOthersMakesAsManyPerhaps) {
  const Unseen unseen = unseen_calls(1.0 / 6.0, Busy{0.5, 0});
  EXPECT_EQ(unseen.factor, 1);
  EXPECT_DOUBLE_EQ(unseen.doubt, 0.25);
}

TEST(CountingCost, WhoSleptLatelyAndIsBusyNowIsNotKnown) {
  EXPECT_DOUBLE_EQ(unseen_calls(1.0 / 3.0, Busy{0.02, 0}).factor, 1.5);
}

TEST(CountingCost, NothingTakenNoDoubt) {
  EXPECT_EQ(unseen_calls(0, Busy{1, 0}).factor, 1);
  EXPECT_EQ(unseen_calls(0, Busy{0.5, 0}).doubt, 0);
}

TEST(BusyThreads, OfText) {
  const auto totals = parse_busy("100 20 3\n");
  ASSERT_TRUE(totals.has_value());
  EXPECT_EQ(totals->running, 100);
  EXPECT_EQ(totals->queued, 20);
  for (const char* text : {"100", "x 1 2", "-1 1 2", ""}) EXPECT_FALSE(parse_busy(text).has_value()) << text;
}

TEST(BusyThreads, KnownAfterTwoLooksAndForgottenUnlessWatched) {
  const BusyThreads::Thread own(getpid(), gettid());
  BusyThreads threads;
  const Ns begin = monotonic_now();
  threads.watch(own);
  threads.look(begin);
  EXPECT_FALSE(threads.busy(own).has_value());
  while (monotonic_now() - begin < 200'000'000) {
  }
  threads.watch(own);
  threads.look(monotonic_now());
  ASSERT_TRUE(threads.busy(own).has_value());
  EXPECT_NEAR(threads.busy(own)->running + threads.busy(own)->queued, 1, 0.2);
  threads.look(monotonic_now());
  EXPECT_FALSE(threads.busy(own).has_value());
}

TEST(BusyThreads, WhoIsGoneIsUnknown) {
  const BusyThreads::Thread nobody(1 << 30, 1 << 30);
  BusyThreads threads;
  threads.watch(nobody);
  threads.look(1);
  threads.watch(nobody);
  threads.look(2);
  EXPECT_FALSE(threads.busy(nobody).has_value());
}

}  // namespace
}  // namespace culprit::record::syscalls
