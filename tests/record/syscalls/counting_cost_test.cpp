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
  EXPECT_EQ(taken_by_counting(1'000'000, 250, 25'000'000), kMostTaken);
}

TEST(CountingCost, WhoIsBusyMakesAsManyMoreAsTheTimeThatCountingTook) {
  // 400 ns a call and 200 for counting it: 2 in the time of 3.
  EXPECT_DOUBLE_EQ(unseen_calls(200.0 / 600.0, 1.0).factor, 1.5);
  EXPECT_DOUBLE_EQ(unseen_calls(200.0 / 600.0, std::nullopt).factor, 1.5);
  EXPECT_GT(unseen_calls(0.3, 1.0).doubt, 0);
}

TEST(CountingCost, WhoWaitsForOthersMakesAsManyPerhaps) {
  const Unseen unseen = unseen_calls(1.0 / 3.0, 0.5);
  EXPECT_EQ(unseen.factor, 1);
  EXPECT_DOUBLE_EQ(unseen.doubt, 0.25);
}

TEST(CountingCost, NothingTakenNoDoubt) {
  EXPECT_EQ(unseen_calls(0, 1.0).factor, 1);
  EXPECT_EQ(unseen_calls(0, 0.5).doubt, 0);
}

TEST(BusyThreads, OfText) {
  EXPECT_EQ(parse_busy("100 20 3\n"), 120);
  EXPECT_EQ(parse_busy("100"), std::nullopt);
  EXPECT_EQ(parse_busy("x 1 2"), std::nullopt);
  EXPECT_EQ(parse_busy("-1 1 2"), std::nullopt);
}

TEST(BusyThreads, KnownAfterTwoLooksAndForgottenUnlessWatched) {
  const BusyThreads::Thread own(getpid(), gettid());
  BusyThreads threads;
  const Ns begin = monotonic_now();
  threads.watch(own);
  threads.look(begin);
  EXPECT_EQ(threads.busy(own), std::nullopt);
  while (monotonic_now() - begin < 200'000'000) {
  }
  threads.watch(own);
  threads.look(monotonic_now());
  ASSERT_TRUE(threads.busy(own).has_value());
  EXPECT_NEAR(*threads.busy(own), 1, 0.2);
  threads.look(monotonic_now());
  EXPECT_EQ(threads.busy(own), std::nullopt);
}

TEST(BusyThreads, WhoIsGoneIsUnknown) {
  const BusyThreads::Thread nobody(1 << 30, 1 << 30);
  BusyThreads threads;
  threads.watch(nobody);
  threads.look(1);
  threads.watch(nobody);
  threads.look(2);
  EXPECT_EQ(threads.busy(nobody), std::nullopt);
}

}  // namespace
}  // namespace culprit::record::syscalls
