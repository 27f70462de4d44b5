#include "record/collector/prompt.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

namespace culprit::record {
namespace {

constexpr rlim_t kLimit = Prompt::kLongest / 1000;

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

/// The exit code of a child that does this; 1000 and the number of the signal that ended it.
int in_child(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool may_be_realtime() { return Prompt().promptness() == Promptness::realtime; }

TEST(Prompt, ComesFirstWhileItLivesAndLeavesNothingBehind) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  const int niceness = getpriority(PRIO_PROCESS, 0);
  const rlim_t before = limit();
  {
    const Prompt prompt;
    EXPECT_EQ(policy(), SCHED_RR);
    EXPECT_EQ(limit(), kLimit);
    EXPECT_TRUE(Prompt::is_held());
  }
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  EXPECT_FALSE(Prompt::is_held());
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
  EXPECT_EQ(limit(), kLimit);
}

/// CPU time until the thread is ordinary.
std::chrono::milliseconds computed_until_ordinary() {
  std::chrono::milliseconds sum{0};
  for (; sum < std::chrono::seconds(10) && policy() == SCHED_RR; sum += std::chrono::milliseconds(50))
    compute(std::chrono::milliseconds(50));
  return sum;
}

TEST(Prompt, WhoComputesForTooLongIsOrdinaryUntilHeAsksAgain) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  Prompt prompt;
  for (int i = 0; i < 3; ++i) {
    // Nobody else takes the CPU meanwhile, but the kernel's own limit for real-time threads may.
    EXPECT_LT(computed_until_ordinary(), std::chrono::milliseconds(900)) << i;
    EXPECT_EQ(policy(), SCHED_OTHER);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // less than half of the time
    prompt.again();
    EXPECT_EQ(policy(), SCHED_RR) << i;
  }
}

TEST(Prompt, WhoTakesMostOfACpuIsOrdinaryForASecond) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE and a kernel that grants real-time priorities";
  Prompt prompt;
  const auto work = [&](std::chrono::milliseconds time) {
    for (const auto until = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < until;) {
      compute(std::chrono::milliseconds(20));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      prompt.again();
    }
  };
  work(std::chrono::milliseconds(1100));
  EXPECT_EQ(policy(), SCHED_OTHER);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  prompt.again();
  EXPECT_EQ(policy(), SCHED_RR);
}

TEST(Prompt, WhoWasGivenAPolicyOnPurposeKeepsIt) {
  EXPECT_EQ(in_child([] {
              const sched_param none{0};
              if (sched_setscheduler(0, SCHED_BATCH, &none) != 0) return 2;
              {
                const Prompt prompt;
                if (prompt.promptness() != Promptness::ordinary || policy() != SCHED_BATCH) return 1;
              }
              return policy() == SCHED_BATCH ? 0 : 1;
            }),
            0);
}

TEST(Prompt, AnotherLimitOfTheCpuStillEndsTheProcess) {
  for (const bool is_held : {true, false}) {
    const int code = in_child([&] {
      std::optional<Prompt> prompt(std::in_place);
      if (!is_held) prompt.reset();
      const rlimit one_second{1, 5};
      setrlimit(RLIMIT_CPU, &one_second);
      prctl(PR_SET_DUMPABLE, 0);
      compute(std::chrono::seconds(30));
      return 0;
    });
    EXPECT_EQ(code, 1000 + SIGXCPU) << is_held;
  }
}

TEST(Prompt, WhoMayNotIsLeftAsHeWas) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  const int code = in_child([] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_RTPRIO, &none) != 0 || setrlimit(RLIMIT_NICE, &none) != 0 || setuid(65534) != 0) return 2;
    const rlim_t before = limit();
    Prompt prompt;
    prompt.again();
    return prompt.promptness() == Promptness::ordinary && policy() == SCHED_OTHER && limit() == before ? 0 : 1;
  });
  if (code == 2) GTEST_SKIP() << "cannot be an ordinary user here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace culprit::record
