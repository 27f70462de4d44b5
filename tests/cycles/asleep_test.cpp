// Recordings in which no thread ran.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cycles/find.h"
#include "cycles/work_threads.h"
#include "make_recorded.h"

namespace culprit::cycles {
namespace {

Recorded asleep(std::string_view in, std::string_view length = "4000000000") {
  Recorded r;
  r.bystander("cc1plus", 1);
  r.fact("sched.source", "ebpf");
  r.fact("record.duration_ns", length);
  r.fact("sched.asleep_in", in);
  return r;
}

bool for_each_other(std::string_view in, std::string_view length = "4000000000") {
  const auto found = asleep_in(asleep(in, length).trace());
  return found && found->for_each_other;
}

TEST(Asleep, IsTheReasonOfNoUnitsAndOfNoSteps) {
  const std::string why = "idle: none of its threads ran, they slept in futex (12), epoll_wait (1)";
  const model::WorkUnits work = asleep("futex (12), epoll_wait (1)").find();
  EXPECT_TRUE(work.idle);
  EXPECT_EQ(work.units[0].reason, why);
  const Trace trace = asleep("futex (12), epoll_wait (1)").trace();
  for (const bool work_units : {true, false}) {
    FindOptions options;
    options.work_units = work_units;
    const auto found = find_cycles(trace, order_slices(trace), options);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->cycles.reason, why);
  }
}

TEST(Asleep, LocksAloneAndWhoWaitsForAChildWaitForEachOther) {
  EXPECT_TRUE(for_each_other("futex (2)"));
  EXPECT_TRUE(for_each_other("futex (12), wait4 (1), futex in shared memory (1)"));
}

TEST(Asleep, WhatMayComeFromOutsideOrByItself) {
  for (const char* in :
       {"futex (12), epoll_wait (1)", "futex (1), accept4 (1)", "futex (1), read (1)", "clock_nanosleep (1)",
        "futex (2), futex with a time-out (1)", "futex in shared memory (1)", "wait4 (1)", "futex (2), unknown (1)",
        "futex_wait_queue (2)", "futex (2), running (1)", "futex (1), restart_syscall (1)"})
    EXPECT_FALSE(for_each_other(in)) << in;
  EXPECT_FALSE(for_each_other("futex (2)", "900000000")) << "it may run a moment later";
}

TEST(Asleep, WhereAnythingRanItIsNone) {
  Recorded r = asleep("futex (2)");
  auto thread = r.thread(7, 7, "server", "server");
  r.does(thread, "oncpu", kMs);
  EXPECT_FALSE(asleep_in(r.trace()));
  EXPECT_FALSE(asleep_in(Trace{}));
}

}  // namespace
}  // namespace culprit::cycles
