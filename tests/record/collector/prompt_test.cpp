#include "record/collector/prompt.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

namespace culprit::record {
namespace {

int policy() { return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

rlim_t limit() {
  rlimit found{};
  getrlimit(RLIMIT_RTTIME, &found);
  return found.rlim_cur;
}

void compute(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

/// The exit code of a child that does this.
int in_child(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

bool may_be_realtime() { return Prompt().promptness() == Promptness::realtime; }

TEST(Prompt, ComesFirstWhileItLivesAndLeavesNothingBehind) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  const int niceness = getpriority(PRIO_PROCESS, 0);
  const rlim_t before = limit();
  {
    const Prompt prompt;
    EXPECT_EQ(policy(), SCHED_RR);
    EXPECT_EQ(limit(), rlim_t{Prompt::kLongest});
  }
  EXPECT_EQ(policy(), SCHED_OTHER);
  EXPECT_EQ(limit(), before);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), niceness);
}

TEST(Prompt, WhatItStartsIsOrdinary) {
  const Prompt prompt;
  EXPECT_EQ(in_child([] { return policy() == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) >= 0 ? 0 : 1; }), 0);
  int of_thread = -1;
  std::thread([&] { of_thread = policy(); }).join();
  EXPECT_EQ(of_thread, SCHED_OTHER);
}

TEST(Prompt, OneInsideOfAnotherTakesNothingFromIt) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  const Prompt outer;
  std::thread([] { EXPECT_EQ(Prompt().promptness(), Promptness::realtime); }).join();
  EXPECT_EQ(policy(), SCHED_RR);
  EXPECT_EQ(limit(), rlim_t{Prompt::kLongest});
}

TEST(Prompt, WhoComputesForTooLongIsOrdinaryUntilHeAsksAgain) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  Prompt prompt;
  for (int i = 0; i < 100 && policy() == SCHED_RR; ++i) compute(std::chrono::milliseconds(100));
  EXPECT_EQ(policy(), SCHED_OTHER);
  prompt.again();
  EXPECT_EQ(policy(), SCHED_RR);
}

TEST(Prompt, AnotherLimitOfTheCpuStillEndsTheProcess) {
  const int code = in_child([] {
    { const Prompt installs_its_handler; }
    const rlimit one_second{1, 3};
    setrlimit(RLIMIT_CPU, &one_second);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    compute(std::chrono::seconds(20));
    return 0;
  });
  EXPECT_EQ(code, 1000 + SIGXCPU);
}

TEST(Prompt, WhoMayNotIsLeftAsHeWas) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  EXPECT_EQ(in_child([] {
              const rlimit none{0, 0};
              if (setrlimit(RLIMIT_RTPRIO, &none) != 0 || setrlimit(RLIMIT_NICE, &none) != 0 || setuid(65534) != 0)
                return 2;
              const rlim_t before = limit();
              Prompt prompt;
              prompt.again();
              return prompt.promptness() == Promptness::ordinary && policy() == SCHED_OTHER && limit() == before ? 0
                                                                                                                 : 1;
            }),
            0);
}

}  // namespace
}  // namespace culprit::record
