// Cycles that are no whole steps: whose markers overlap by what times were rounded by, whose markers were lost, whose
// GPU work the recording does not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cycles/find.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing_support::TraceMaker;

Found found_by(const Trace& trace, const std::string& anchor = {}) {
  FindOptions options;
  options.anchor = anchor;
  auto found = find_cycles(trace, order_slices(trace), options);
  EXPECT_TRUE(found.ok());
  return std::move(*found);
}

std::vector<Ns> begins(const Found& found) {
  std::vector<Ns> all;
  for (const model::Cycle& cycle : found.cycles.cycles) all.push_back(cycle.begin);
  return all;
}

TEST(Edges, MarkersThatOverlapByRoundingFollowEachOther) {
  for (const Ns overlap : {0, 1, 256, 1000}) {
    TraceMaker maker;
    const TrackId thread = maker.thread(1, 1);
    for (int i = 0; i < 8; ++i)
      maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1'000'000,
                  1'000'000 + (i % 3 == 0 ? overlap : 0));
    EXPECT_EQ(begins(found_by(maker.trace())).size(), 8U) << overlap;
  }
}

TEST(Edges, WhatLiesInsideAMarkerIsNoNextOne) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 8; ++i) {
    maker.slice(thread, "user_annotation", "step", i * 1'000'000, 900'000);
    maker.slice(thread, "user_annotation", "step", i * 1'000'000 + 10'000, 100'000);
    maker.slice(thread, "user_annotation", "step", i * 1'000'000 + 899'500, 500);      // at its very end
    maker.slice(thread, "user_annotation", "step", i * 1'000'000 + 600'000, 350'000);  // half in, half out
  }
  EXPECT_EQ(begins(found_by(maker.trace())).size(), 8U);
}

TEST(Edges, ShortMarkersMayOverlapByAPartOfThemOnly) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 8; ++i) maker.slice(thread, "user_annotation", "step", i * 1000, i % 2 == 0 ? 1900 : 1000);
  EXPECT_EQ(begins(found_by(maker.trace())).size(), 4U);
}

TEST(Edges, ACycleOfSeveralStepsIsNotWhole) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 20; ++i)
    if (i != 7 && i != 12 && i != 13)
      maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i * 10), i * 1000, 900);
  const Found found = found_by(maker.trace());
  ASSERT_EQ(found.cycles.cycles.size(), 17U);
  const std::vector<bool> whole = model::whole_periods(found.cycles);
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) EXPECT_EQ(whole[i], i != 6 && i != 10) << i;
  EXPECT_THAT(found.cycles.notes, Contains(HasSubstr("2 cycles of several steps are left out")));
}

TEST(Edges, NumbersThatCountSomethingElseSayNothingOfSteps) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  int request = 0;
  for (int i = 0; i < 20; ++i) {
    request += 1 + i * i % 5;
    maker.slice(thread, "user_annotation", "step " + std::to_string(request), i * 1000, 900);
  }
  const std::vector<bool> whole = model::whole_periods(found_by(maker.trace()).cycles);
  EXPECT_EQ(std::ranges::count(whole, true), 19);
}

/// Steps of 1 us on the host, of which the device does 10 kernels each, and the recording ends with the host `ahead`.
Trace cut_short(int steps, int ahead, int kernels_of_next) {
  TraceMaker maker;
  const TrackId thread = maker.thread(100, 1);
  const TrackId stream = maker.stream(0, 7);
  std::uint32_t correlation = 0;
  for (int i = 0; i < steps; ++i) {
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 1000);
    for (int k = 0; k < 10; ++k) {
      const SliceIndex launch =
          maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", i * 1000 + k * 20, 5, ++correlation);
      const int next = i - (steps - ahead);
      if (next < 0 || (next == 0 && k < kernels_of_next))
        maker.gpu(stream, "kernel", "k", (i + ahead) * 1000 + k * 50, 20, launch);
    }
  }
  return std::move(maker.trace());
}

TEST(Edges, StepsWhoseKernelsAreNoLongerRecordedAreNotWhole) {
  for (const int kernels : {0, 3}) {
    const std::vector<bool> whole = model::whole_periods(found_by(cut_short(20, 4, kernels)).cycles);
    ASSERT_EQ(whole.size(), 20U);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], i < 16) << i << " of " << kernels;
  }
}

TEST(Edges, AStepThatHadLessToDoIsWhole) {
  TraceMaker maker;
  const TrackId thread = maker.thread(100, 1);
  const TrackId stream = maker.stream(0, 7);
  for (int i = 0; i < 20; ++i) {
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 1000);
    for (int k = 0; k < (i == 18 ? 4 : 10); ++k) {
      const auto correlation = static_cast<std::uint32_t>(i * 10 + k + 1);
      const SliceIndex launch =
          maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", i * 1000 + k * 20, 5, correlation);
      maker.gpu(stream, "kernel", "k", i * 1000 + k * 50 + 10, 20, launch);
    }
  }
  const std::vector<bool> whole = model::whole_periods(found_by(maker.trace()).cycles);
  EXPECT_TRUE(whole[18]);
}

TEST(Edges, AnAnchorThatWouldBeFoundIsAsSureWhenItIsNamed) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 12; ++i)
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000 + i % 3 * 300, 600);
  const Found found = found_by(maker.trace());
  const Found named = found_by(maker.trace(), "ProfilerStep#N");
  EXPECT_EQ(named.cycles.period_confidence, found.cycles.period_confidence);
  EXPECT_GT(named.cycles.period_confidence, 0.95);
  EXPECT_TRUE(named.cycles.anchor_given);
}

/// Steps of 10 ms of a thread; behind the last one nothing but its scheduling, as long as it `waits` for a CPU, then
/// `sleeps` and then `works`, ns.
Found stalled(Ns waits, Ns sleeps, Ns works = 0) {
  constexpr Ns kStep = 10'000'000;
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const TrackId sched = maker.sched(1, 1);
  for (int i = 0; i < 8; ++i) {
    maker.slice(thread, "step", "step[DECODE bs=4]", i * kStep, kStep - 1'000'000);
    maker.slice(sched, "sched", "oncpu", i * kStep, kStep - 500'000);
    maker.slice(sched, "sched", "runq", (i + 1) * kStep - 500'000, i < 7 ? 500'000 : waits);
  }
  if (sleeps > 0) maker.slice(sched, "sched", "blocked", 8 * kStep - 500'000 + waits, sleeps);
  if (works > 0) maker.slice(sched, "sched", "oncpu", 8 * kStep - 500'000 + waits + sleeps, works);
  return found_by(maker.trace(), "step[DECODE bs=4]");
}

TEST(Edges, AStepThatWaitsForACpuWhenTheRecordingEndsCounts) {
  const Found found = stalled(3'000'000'000, 0);
  const model::Cycle& last = found.cycles.cycles.back();
  EXPECT_TRUE(last.stands_still);
  EXPECT_TRUE(model::whole_periods(found.cycles).back());
  EXPECT_EQ(last.period, 3'009'500'000);
  EXPECT_EQ(last.no_work, 0);
}

TEST(Edges, AStepThatWaitsNoLongerThanOthersTookOrForWorkOrIsFollowedByOtherWorkDoesNot) {
  for (const Found& found :
       {stalled(5'000'000, 0), stalled(500'000, 3'000'000'000), stalled(3'000'000'000, 0, 2'000'000'000)}) {
    EXPECT_FALSE(found.cycles.cycles.back().stands_still);
    EXPECT_FALSE(model::whole_periods(found.cycles).back());
    EXPECT_LT(found.cycles.cycles.back().period, 20'000'000);
  }
}

TEST(Edges, WorkOnAStreamOfSeveralProcessesIsPlacedInCyclesOfItsOwn) {
  TraceMaker maker;
  const TrackId mine = maker.thread(1, 1);
  const TrackId other = maker.thread(2, 1);
  const TrackId stream = maker.stream(1, 7);  // of process 1
  std::vector<SliceIndex> launches;
  for (const TrackId thread : {mine, other})
    for (int i = 0; i < 3; ++i) {
      maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 900);
      launches.push_back(maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", i * 1000 + 10, 5,
                                     static_cast<std::uint32_t>(launches.size() + 1)));
    }
  maker.gpu(stream, "kernel", "k", 100, 20, launches.front());
  maker.gpu(stream, "kernel", "k", 200, 20, launches.back());
  const SliceIndex unlinked = maker.gpu(stream, "kernel", "k", 300, 20);
  const Found found = found_by(maker.trace());
  ASSERT_NE(found.cycle_of_slice[unlinked], kNone);
  const model::Cycle& cycle = found.cycles.cycles[found.cycle_of_slice[unlinked]];
  EXPECT_EQ(maker.trace().processes[cycle.process].pid, 1);
  EXPECT_EQ(cycle.begin, 0);
}

TEST(Edges, TheLargestNumberOfAMarkerHasNoSuccessor) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Ns at = 0;
  for (const char* name : {"step 9223372036854775806", "step 9223372036854775807", "step 0", "step 1"})
    maker.slice(thread, "user_annotation", name, at += 1000, 900);
  EXPECT_EQ(begins(found_by(maker.trace())).size(), 4U);
}

}  // namespace
}  // namespace culprit::cycles
