#include "record/sched/blocked.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstring>
#include <string>
#include <vector>

#include "record/sched/sched.h"

namespace culprit::record::sched {
namespace {

struct Seen {
  Blocked blocked;
  std::string waker;
};

struct Fixture : ::testing::Test {
  std::vector<Seen> seen;
  BlockedIntervals intervals{[this](const Blocked& blocked) { seen.push_back({blocked, std::string(blocked.waker)}); }};

  void leaves(Ns at, std::int32_t tid, std::uint32_t state, std::int32_t syscall = -1) {
    culprit_switch record{};
    record.head.at = static_cast<__u64>(at);
    record.prev_tid = tid;
    record.prev_tgid = 1;
    record.prev_state = state;
    record.syscall = syscall;
    intervals.on_switch(record, true, false);
  }
  void comes(Ns at, std::int32_t tid) {
    culprit_switch record{};
    record.head.at = static_cast<__u64>(at);
    record.next_tid = tid;
    intervals.on_switch(record, false, true);
  }
  void woken(Ns at, std::int32_t tid, std::uint32_t context = CULPRIT_TASK) {
    culprit_waking record{};
    record.head.at = static_cast<__u64>(at);
    record.tid = tid;
    record.waker_tid = 77;
    record.waker_tgid = 70;
    record.context = context;
    std::memcpy(record.waker_comm, "waker", 5);
    intervals.on_waking(record);
  }
};

TEST_F(Fixture, LastsFromSwitchToWakeUp) {
  leaves(1'000'000, 5, 1, SYS_futex);
  woken(3'000'000, 5);
  comes(3'500'000, 5);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].blocked.begin, 1'000'000);
  EXPECT_EQ(seen[0].blocked.end, 3'000'000);
  EXPECT_EQ(seen[0].blocked.waker_tid, 77);
  EXPECT_EQ(seen[0].blocked.waker_tgid, 70);
  EXPECT_EQ(seen[0].waker, "waker");
  EXPECT_EQ(blocked_name(seen[0].blocked), "blocked:futex");
}

TEST_F(Fixture, PreemptionIsNotBlocking) {
  leaves(1'000'000, 5, 0);
  comes(2'000'000, 5);
  EXPECT_TRUE(seen.empty());
}

struct StacksFixture : Fixture {
  void waits(Ns from, Ns to, std::int32_t syscall, std::int32_t stack, std::uint32_t place = 0x1000) {
    culprit_switch record{};
    record.head.at = static_cast<__u64>(from);
    record.prev_tid = 5;
    record.prev_tgid = 1;
    record.prev_state = 1;
    record.syscall = syscall;
    record.stack = stack;
    record.place = place;
    intervals.on_switch(record, true, false);
    woken(to, 5);
  }
};

TEST_F(StacksFixture, AWaitInTheSameCallSoonAfterStandsWhereTheLastStood) {
  waits(1'000'000, 1'100'000, SYS_futex, 17);
  waits(1'200'000, 1'300'000, SYS_futex, -1);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_FALSE(seen[0].blocked.earlier_stack);
  EXPECT_EQ(seen[1].blocked.stack, 17);
  EXPECT_TRUE(seen[1].blocked.earlier_stack);
}

TEST_F(StacksFixture, AWaitInAnotherCallOrLaterHasNoStackOfBefore) {
  waits(1'000'000, 1'100'000, SYS_futex, 17);
  waits(1'200'000, 1'300'000, SYS_read, -1);
  waits(4'000'000, 4'100'000, SYS_futex, -1);
  waits(4'200'000, 4'300'000, -1, -1);
  ASSERT_EQ(seen.size(), 4u);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].blocked.stack, -1) << i;
    EXPECT_FALSE(seen[i].blocked.earlier_stack) << i;
  }
}

TEST_F(StacksFixture, AWaitInTheSameCallOfAnotherPlaceStandsThere) {
  // A database waits for the next request, and for a lock, in one call.
  waits(1'000'000, 1'100'000, SYS_epoll_wait, 17, 0x1000);
  waits(1'200'000, 1'300'000, SYS_epoll_wait, 18, 0x800);
  waits(1'400'000, 1'500'000, SYS_epoll_wait, -1, 0x1000);
  waits(1'600'000, 1'700'000, SYS_epoll_wait, -1, 0x800);
  waits(1'800'000, 1'900'000, SYS_epoll_wait, -1, 0x400);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[2].blocked.stack, 17);
  EXPECT_EQ(seen[3].blocked.stack, 18);
  EXPECT_EQ(seen[4].blocked.stack, -1) << "none was taken there";
}

TEST_F(Fixture, AHardInterruptIsNotTheRunningThread) {
  leaves(1'000'000, 5, 1);
  woken(2'000'000, 5, CULPRIT_HARDIRQ);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].blocked.waker_tid, 0);
  EXPECT_EQ(seen[0].blocked.context, CULPRIT_HARDIRQ);
}

TEST_F(Fixture, WithoutAWakeUpItEndsWhenTheThreadRuns) {
  leaves(1'000'000, 5, 2);
  comes(4'000'000, 5);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].blocked.end, 4'000'000);
  EXPECT_EQ(seen[0].blocked.waker_tid, 0);
}

TEST_F(Fixture, WithoutAWakeUpAndASwitchItEndsWhereTheThreadLeavesAgain) {
  leaves(1'000'000, 5, 1, SYS_futex);
  leaves(3'000'000, 5, 1, SYS_read);
  woken(4'000'000, 5);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].blocked.begin, 1'000'000);
  EXPECT_EQ(seen[0].blocked.end, 3'000'000);
  EXPECT_EQ(blocked_name(seen[0].blocked), "blocked:futex");
  EXPECT_EQ(seen[1].blocked.begin, 3'000'000);
  EXPECT_EQ(blocked_name(seen[1].blocked), "blocked:read");
}

TEST_F(Fixture, AWakeUpRecordedBeforeItsSwitchLeavesNoInterval) {
  woken(999'000, 5);
  leaves(1'000'000, 5, 1);
  comes(9'000'000, 5);  // it was runnable, it was not blocked
  EXPECT_TRUE(seen.empty());
}

TEST_F(Fixture, AnOldWakeUpIsNotMistakenForAnEarlyOne) {
  woken(1'000, 5);
  leaves(9'000'000, 5, 1);
  woken(10'000'000, 5);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].blocked.begin, 9'000'000);
}

TEST_F(Fixture, TheFirstWakeUpOfAThreadEndsNothing) {
  culprit_waking record{};
  record.head.at = 500;
  record.tid = 5;
  record.is_new = 1;
  intervals.on_waking(record);
  leaves(1'000, 5, 1);
  woken(2'000, 5);
  EXPECT_EQ(seen.size(), 1u);
}

TEST_F(Fixture, DeathIsNotBlocking) {
  leaves(1'000, 5, 0x80);
  intervals.finish(9'000);
  EXPECT_TRUE(seen.empty());
}

TEST_F(Fixture, WhatHasNotEndedIsHandedOverInOrder) {
  leaves(1'000, 9, 1);
  leaves(2'000, 5, 1);
  leaves(3'000, 7, 1);
  intervals.on_exit(7);
  intervals.finish(10'000);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].blocked.tid, 5);
  EXPECT_EQ(seen[1].blocked.tid, 9);
  EXPECT_TRUE(seen[0].blocked.open);
  EXPECT_EQ(seen[0].blocked.end, 10'000);
  intervals.finish(20'000);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(BlockedName, ReasonsWithoutASystemCall) {
  Blocked blocked;
  blocked.state = 2;
  EXPECT_EQ(blocked_name(blocked), "blocked:page_fault");
  blocked.state = 4;
  blocked.syscall = SYS_read;
  EXPECT_EQ(blocked_name(blocked), "blocked:stopped");
  blocked.state = 1;
  blocked.syscall = -1;
  EXPECT_EQ(blocked_name(blocked), "blocked:unknown");
}

TEST(ReportedState, KernelBitsToTheStatesOfTheFormat) {
  EXPECT_EQ(reported_state(0), 0);
  EXPECT_EQ(reported_state(1), 1);
  EXPECT_EQ(reported_state(2), 2);
  EXPECT_EQ(reported_state(0x102), 2);     // killable: wakes for fatal signals only
  EXPECT_EQ(reported_state(0x402), 0x80);  // idle kernel thread
  EXPECT_EQ(reported_state(4), 4);
  EXPECT_EQ(reported_state(8), 8);
  EXPECT_EQ(reported_state(0x80), 0x10);  // dead
  EXPECT_EQ(reported_state(0x1000), 2);   // lock of a real-time kernel
  EXPECT_EQ(reported_state(0x8000), 2);   // frozen
}

TEST_F(Fixture, WhatGoesOnWhenAFileEndsIsAPartInEach) {
  leaves(1'000'000, 5, 1, SYS_futex);
  leaves(2'000'000, 4, 1, SYS_read);
  woken(3'000'000, 4);
  intervals.cut(4'000'000);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].blocked.tid, 5);
  EXPECT_EQ(seen[1].blocked.begin, 1'000'000);
  EXPECT_EQ(seen[1].blocked.end, 4'000'000);
  EXPECT_TRUE(seen[1].blocked.open);
  woken(6'000'000, 5);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2].blocked.begin, 4'000'000);
  EXPECT_EQ(seen[2].blocked.end, 6'000'000);
  EXPECT_EQ(seen[2].blocked.syscall, SYS_futex);
  EXPECT_FALSE(seen[2].blocked.open);
}

}  // namespace
}  // namespace culprit::record::sched
