#include "faults/process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "support/child_process.h"

namespace culprit::faults {
namespace {

std::string refusal(pid_t pid, bool any_user = false) {
  const auto target = open_target(pid, any_user);
  return target ? std::string("allowed") : to_string(target.error());
}

TEST(Process, ANameFullOfParenthesesIsReadRight) {
  const test::Child child([] {
    prctl(PR_SET_NAME, ") R 1 (x) Z 2");
    pause();
  });
  ASSERT_TRUE(test::eventually([&] { return process_facts(child.pid)->state == 'S'; }));
  EXPECT_EQ(process_facts(child.pid)->parent, getpid());
  EXPECT_EQ(process_facts(child.pid)->user, geteuid());
}

TEST(Process, WhatMustNotBeDisturbedIsRefused) {
  EXPECT_THAT(refusal(1), testing::HasSubstr("process 1 is never"));
  EXPECT_THAT(refusal(0), testing::HasSubstr("no process number"));
  EXPECT_THAT(refusal(-1), testing::HasSubstr("no process number"));
  EXPECT_THAT(refusal(getpid()), testing::HasSubstr("itself"));
  if (getppid() > 1) {
    EXPECT_THAT(refusal(getppid()), testing::HasSubstr("started this program"));
  }
  EXPECT_THAT(refusal(2'000'000'000), testing::HasSubstr("no such process"));
  if (const auto facts = process_facts(2); facts && facts->kernel_thread) {
    EXPECT_THAT(refusal(2), testing::HasSubstr("kernel thread"));
  }
  const test::Child child;
  EXPECT_EQ(refusal(child.pid), "allowed");
}

TEST(Process, AThreadIsNoProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const test::Child child([&] {
    std::thread([&] {
      const pid_t thread = gettid();
      static_cast<void>(write(ends[1], &thread, sizeof thread));
      pause();
    }).join();
  });
  pid_t thread = 0;
  ASSERT_EQ(read(ends[0], &thread, sizeof thread), static_cast<ssize_t>(sizeof thread));
  EXPECT_THAT(refusal(thread), testing::HasSubstr(fmt::format("{} is a thread of process {}", thread, child.pid)));
  for (const int end : ends) close(end);
}

TEST(Process, OtherUsersAreLeftAloneUnlessRootInsists) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to start a process as another user";
  const test::Child child([] {
    if (setuid(65534) != 0) _exit(1);
    pause();
  });
  ASSERT_TRUE(test::eventually([&] { return process_facts(child.pid)->user == 65534; }));
  EXPECT_THAT(refusal(child.pid), testing::HasSubstr("belongs to user 65534"));
  EXPECT_EQ(refusal(child.pid, true), "allowed");
}

TEST(Process, AHandleIsOfOneProcessOnly) {
  test::Child child;
  const ProcessId id = process_facts(child.pid)->id;
  EXPECT_FALSE(ProcessHandle::open({id.pid, id.start + 1}));
  const auto handle = ProcessHandle::open(id);
  ASSERT_TRUE(handle);
  EXPECT_FALSE(handle->ended());
  child.end();
  EXPECT_TRUE(handle->ended());
  EXPECT_FALSE(handle->signal(SIGCONT));
  EXPECT_FALSE(ProcessHandle::open(id));
}

TEST(Process, TheTreeHoldsGrandchildren) {
  const test::Child child([] {
    if (fork() == 0 && fork() == 0) pause();
    pause();
  });
  EXPECT_TRUE(test::eventually([&] { return process_tree(process_facts(child.pid)->id).size() == 3; }));
  EXPECT_TRUE(process_tree({child.pid, 1}).empty());
}

}  // namespace
}  // namespace culprit::faults
