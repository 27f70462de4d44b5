#include "summary/self_time.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using testing_support::TraceMaker;

TEST(SelfTimes, DirectChildrenAreTakenOff) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 100);
  make.slice(thread, "cpu_op", "inner", 10, 50);
  make.slice(thread, "cuda_runtime", "launch", 20, 10);
  make.slice(thread, "cpu_op", "inner", 70, 10);
  EXPECT_EQ(self_times(make.trace()), (std::vector<Ns>{40, 40, 10, 10}));
}

TEST(SelfTimes, OtherThreadsAndGpuWorkDoNotNest) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "a", 0, 100);
  make.slice(make.thread(1, 2), "cpu_op", "b", 10, 20);
  const TrackId stream = make.stream(0, 7);
  make.gpu(stream, "kernel", "k", 0, 100);
  make.gpu(stream, "kernel", "k", 10, 20);
  EXPECT_EQ(self_times(make.trace()), (std::vector<Ns>{100, 20, 100, 20}));
}

TEST(SelfTimes, OverlapTakesOnlyTheCommonPartAndNeverTwice) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "a", 0, 100);
  make.slice(thread, "cpu_op", "outlasts", 90, 50);
  make.slice(thread, "cpu_op", "inside the second", 120, 10);
  EXPECT_EQ(self_times(make.trace()), (std::vector<Ns>{90, 40, 10}));
}

TEST(SelfTimes, SameSpanAndZeroDuration) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "a", 0, 10);
  make.slice(thread, "cpu_op", "b", 0, 10);
  make.slice(thread, "cpu_op", "z", 5, 0);
  make.slice(thread, "cpu_op", "next", 10, 5);
  EXPECT_EQ(self_times(make.trace()), (std::vector<Ns>{0, 10, 0, 5}));
}

TEST(SelfTimes, NestedSlicesSumToTheTimeCovered) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  for (Ns i = 0; i < 1000; ++i) make.slice(thread, "cpu_op", "f", i, 2000 - 2 * i);  // depth 1000
  const auto self = self_times(make.trace());
  EXPECT_EQ(std::accumulate(self.begin(), self.end(), Ns{0}), 2000);
}

TEST(SelfTimes, EmptyTrace) { EXPECT_TRUE(self_times(Trace{}).empty()); }

}  // namespace
}  // namespace culprit::summary
