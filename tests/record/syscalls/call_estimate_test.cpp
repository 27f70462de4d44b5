#include "record/syscalls/call_estimate.h"

#include <gtest/gtest.h>

namespace culprit::record::syscalls {
namespace {

TEST(CallEstimate, CallsThatLastLongerThanALookHaveTheirTimeOnce) {
  // Four sleeps of 1.5 s, looked at every second.
  CallEstimate sleeps;
  sleeps.add(1, 0, 0, 1);
  sleeps.add(2, 1, 1'500, 1);
  sleeps.add(2, 2, 3'000, 1);
  sleeps.add(3, 2, 3'000, 1);
  sleeps.add(4, 3, 4'500, 1);
  sleeps.add(4, 4, 6'000, 1);
  EXPECT_DOUBLE_EQ(sleeps.calls, 4);
  EXPECT_DOUBLE_EQ(sleeps.estimated_ns, 6'000);
}

TEST(CallEstimate, TheyHaveItOnceAfterCallsThatWereNotTimed) {
  CallEstimate sleeps;
  sleeps.add(1'000, 100, 1'000, 1);
  const double before = sleeps.estimated_ns;
  sleeps.add(1'001, 100, 1'000, 1);
  sleeps.add(1'001, 101, 2'000, 1);
  EXPECT_DOUBLE_EQ(sleeps.estimated_ns - before, 1'000);
}

TEST(CallEstimate, CallsWithoutATimeTookAsLongAsTheOthers) {
  CallEstimate reads;
  EXPECT_DOUBLE_EQ(reads.add(800, 100, 5'000, 1), 800);
  EXPECT_DOUBLE_EQ(reads.estimated_ns, 40'000);
  reads.add(1'600, 100, 5'000, 1);
  EXPECT_DOUBLE_EQ(reads.estimated_ns, 80'000);
}

TEST(CallEstimate, CallsBeforeTheFirstThatWasTimedHaveItsTime) {
  CallEstimate reads;
  reads.add(10, 0, 0, 4);
  EXPECT_DOUBLE_EQ(reads.estimated_ns, 0);
  reads.add(20, 10, 100, 4);
  EXPECT_DOUBLE_EQ(reads.calls, 80);
  EXPECT_DOUBLE_EQ(reads.estimated_ns, 800);
}

TEST(CallEstimate, ThoseThatWereTimedLastTellWhatALaterOneTook) {
  CallEstimate sleeps;
  sleeps.add(10, 10, 1'000'000, 1);  // before the load
  sleeps.add(20, 20, 1'000'100, 1);
  const double before = sleeps.estimated_ns;
  sleeps.add(30, 20, 1'000'100, 1);
  EXPECT_DOUBLE_EQ(sleeps.estimated_ns - before, 100);
}

TEST(CallEstimate, OneThatIsCountedStandsForSeveral) {
  CallEstimate reads;
  EXPECT_DOUBLE_EQ(reads.add(10, 10, 100, 10), 100);
  EXPECT_DOUBLE_EQ(reads.calls, 100);
  EXPECT_DOUBLE_EQ(reads.estimated_ns, 1'000);
}

}  // namespace
}  // namespace culprit::record::syscalls
