#include "summary/sched_info.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "summary/function_stats.h"
#include "trace/builder.h"

namespace culprit::summary {
namespace {

/// One thread with scheduling, and what it was blocked in.
Trace scheduled() {
  TraceBuilder builder(Rank{});
  const TrackId sched = builder.track({.pid = 7, .tid = 8, .kind = TrackKind::sched});
  const TrackId blocked =
      builder.track({.pid = 7, .tid = 8, .tid_text = builder.intern("blocked"), .kind = TrackKind::async});
  const auto add = [&](TrackId track, Ns begin, Ns duration, std::string_view name, std::string_view category) {
    Slice slice;
    slice.begin = begin;
    slice.duration = duration;
    slice.name = builder.intern(name);
    slice.track = track;
    slice.category = builder.category(category);
    builder.add(slice);
  };
  add(sched, 0, 10, "oncpu", "sched");
  add(sched, 10, 5, "blocked_uninterruptible", "sched");
  add(sched, 15, 3, "runq", "sched");
  add(sched, 18, 2, "oncpu", "sched");
  add(sched, 20, 4, "blocked", "sched");
  add(blocked, 10, 5, "blocked:fsync", "blocked");
  add(blocked, 20, 4, "blocked:futex", "blocked");
  ThreadSched stats;
  stats.track = sched;
  stats.switches = 2;
  stats.woken_by = {{builder.intern("waker"), 9, 2, 0}};
  stats.ran_instead = {{0, 0, 1, 3}};
  builder.trace().sched.push_back(stats);
  return std::move(builder).finish();
}

TEST(SchedInfo, StatesAreSummed) {
  const auto threads = sched_info(scheduled());
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].pid, 7);
  EXPECT_EQ(threads[0].tid, 8);
  EXPECT_EQ(threads[0].on_cpu, 12);
  EXPECT_EQ(threads[0].run_queue, 3);
  EXPECT_EQ(threads[0].blocked, 9);
  EXPECT_EQ(threads[0].uninterruptible, 5);
  EXPECT_EQ(threads[0].switches, 2U);
}

/// Time of all rows in these classes, and of those of one name.
std::pair<Ns, Ns> time_of(ClassSet classes, std::string_view name) {
  const Trace trace = scheduled();
  FunctionQuery query;
  query.classes = classes;
  const FunctionSums sums = function_stats(trace, query);
  Ns all = 0;
  Ns named = 0;
  for (const FunctionStats& row : sums.functions) {
    all += row.self;
    if (row.label == name) named += row.self;
  }
  return {all, named};
}

TEST(SchedInfo, BlockedTimeCountsOnceWithItsReasonAndWithout) {
  constexpr ClassSet kStates = class_bit(SliceClass::os_sched);
  EXPECT_EQ(time_of(kStates, "blocked"), std::pair(Ns{24}, Ns{4}));
  EXPECT_EQ(time_of(kStates | class_bit(SliceClass::syscall), "blocked"), std::pair(Ns{24}, Ns{0}));
  EXPECT_EQ(time_of(kStates | class_bit(SliceClass::syscall), "blocked:futex"), std::pair(Ns{24}, Ns{4}));
}

TEST(SchedInfo, ReasonsOfBlockingComeLongestFirst) {
  const auto threads = sched_info(scheduled());
  ASSERT_EQ(threads.at(0).blocked_in.size(), 2U);
  EXPECT_EQ(threads[0].blocked_in[0].first, "blocked:fsync");
  EXPECT_EQ(threads[0].blocked_in[0].second.sum, 5);
}

TEST(SchedInfo, PeersHaveNames) {
  const auto threads = sched_info(scheduled());
  EXPECT_EQ(threads.at(0).woken_by.at(0).name, "waker");
  EXPECT_EQ(threads[0].ran_instead.at(0).name, "interrupt or idle");
}

TEST(SchedInfo, TracesWithoutSchedulingHaveNone) { EXPECT_TRUE(sched_info(Trace{}).empty()); }

}  // namespace
}  // namespace culprit::summary
