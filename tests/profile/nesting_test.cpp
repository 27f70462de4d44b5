#include "profile/nesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stop_token>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing::ElementsAre;
using testing_support::TraceMaker;

TEST(Nesting, DirectChildrenAreTakenOff) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 100);
  make.slice(thread, "cpu_op", "inner", 10, 50);
  make.slice(thread, "cuda_runtime", "launch", 20, 10);
  make.slice(thread, "cpu_op", "inner", 70, 10);
  EXPECT_EQ(find_nesting(make.trace()).self, (std::vector<Ns>{40, 40, 10, 10}));
}

TEST(Nesting, AStopEndsItBeforeTheNextSlice) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "outer", 0, 100);
  std::stop_source source;
  EXPECT_EQ(find_nesting(make.trace(), source.get_token()).self, (std::vector<Ns>{100}));
  source.request_stop();
  EXPECT_EQ(find_nesting(make.trace(), source.get_token()).self, (std::vector<Ns>{0}));
}

TEST(Nesting, OtherThreadsAndGpuWorkDoNotNest) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "a", 0, 100);
  make.slice(make.thread(1, 2), "cpu_op", "b", 10, 20);
  const TrackId stream = make.stream(0, 7);
  make.gpu(stream, "kernel", "k", 0, 100);
  make.gpu(stream, "kernel", "k", 10, 20);
  EXPECT_EQ(find_nesting(make.trace()).self, (std::vector<Ns>{100, 20, 100, 20}));
}

TEST(Nesting, WhatOutlastsASliceLiesBesideIt) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "user_annotation", "range", 0, 100'000);
  make.slice(thread, "cpu_op", "inside", 10'000, 20'000);
  make.slice(thread, "python_function", "__exit__", 80'000, 40'000);
  make.slice(thread, "python_function", "called by __exit__", 90'000, 5'000);
  EXPECT_THAT(find_nesting(make.trace()).self, ElementsAre(80'000, 20'000, 35'000, 5'000));
}

TEST(Nesting, OverlapIsNeverTakenTwice) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "python_function", "around both", 0, 200'000);
  make.slice(thread, "user_annotation", "range", 0, 100'000);
  make.slice(thread, "python_function", "__exit__", 80'000, 40'000);
  EXPECT_THAT(find_nesting(make.trace()).self, ElementsAre(80'000, 100'000, 40'000));
}

TEST(Nesting, AMicrosecondOfRoundingIsForgiven) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 10'000);
  make.slice(thread, "cpu_op", "inner", 6'000, 5'000);
  make.slice(thread, "cpu_op", "innermost", 9'000, 1'000);
  EXPECT_THAT(find_nesting(make.trace()).self, ElementsAre(6'000, 4'000, 1'000));
}

TEST(Nesting, SameSpanAndZeroDuration) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "a", 0, 10);
  make.slice(thread, "cpu_op", "b", 0, 10);
  make.slice(thread, "cpu_op", "z", 5, 0);
  make.slice(thread, "cpu_op", "next", 10, 5);
  EXPECT_EQ(find_nesting(make.trace()).self, (std::vector<Ns>{0, 10, 0, 5}));
}

TEST(Nesting, NestedSlicesSumToTheTimeCovered) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  for (Ns i = 0; i < 1000; ++i) make.slice(thread, "cpu_op", "f", i, 2000 - 2 * i);  // depth 1000
  const auto self = find_nesting(make.trace()).self;
  EXPECT_EQ(std::accumulate(self.begin(), self.end(), Ns{0}), 2000);
}

TEST(Nesting, OnlyAnOnlyChildOfTheSameNameIsTheSameCallAgain) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "a", 0, 100);
  make.slice(thread, "cpu_op", "a", 10, 80);
  make.slice(thread, "cpu_op", "a", 20, 10);
  make.slice(thread, "cpu_op", "b", 200, 100);
  make.slice(thread, "cpu_op", "b", 210, 10);
  make.slice(thread, "cpu_op", "b", 230, 10);
  make.slice(thread, "cpu_op", "c", 400, 100);
  make.slice(thread, "user_annotation", "c", 410, 10);
  EXPECT_THAT(find_nesting(make.trace()).again, ElementsAre(false, true, true, false, false, false, false, false));
}

TEST(Nesting, TheParentIsTheNextOneOutside) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 100);
  make.slice(thread, "cpu_op", "inner", 10, 50);
  make.slice(thread, "cuda_runtime", "launch", 20, 10);
  make.slice(thread, "cpu_op", "beside", 100, 10);
  make.gpu(make.stream(0, 7), "kernel", "k", 0, 100);
  EXPECT_THAT(find_nesting(make.trace()).parent, ElementsAre(kNone, 0U, 1U, kNone, kNone));
}

TEST(Nesting, EmptyTrace) { EXPECT_TRUE(find_nesting(Trace{}).self.empty()); }

}  // namespace
}  // namespace culprit::profile
