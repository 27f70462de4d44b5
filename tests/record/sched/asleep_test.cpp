// In what threads sleep that never ran.
#include "record/sched/asleep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace culprit::record::sched {
namespace {

#ifdef __x86_64__
TEST(AsleepThreads, TheCallIsNamed) {
  EXPECT_EQ(parse_sleep("232 0x4 0x7ffd 0x1 0xffffffff 0x0 0x8 0x7ffd7a 0x7f8a\n"), "epoll_wait");
  EXPECT_EQ(parse_sleep("230 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x7ffd7a 0x7f8a\n"), "clock_nanosleep");
}

TEST(AsleepThreads, OfLocksItIsToldWhoCanWakeFromThem) {
  EXPECT_EQ(parse_sleep("202 0x55d0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd7a 0x7f8a\n"), "futex");
  EXPECT_EQ(parse_sleep("202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffd7a 0x7f8a\n"), "futex");
  EXPECT_EQ(parse_sleep("202 0x55d0 0x189 0x0 0x7ffd10 0x0 0xffffffff 0x7ffd7a 0x7f8a\n"), "futex with a time-out");
  EXPECT_EQ(parse_sleep("202 0x55d0 0x109 0x0 0x0 0x0 0xffffffff 0x7ffd7a 0x7f8a\n"), "futex in shared memory");
  EXPECT_EQ(parse_sleep("202 0x55d0\n"), "futex with a time-out") << "nobody tells that it has none";
}
#endif

TEST(AsleepThreads, WhatIsNoCall) {
  EXPECT_EQ(parse_sleep("running\n"), "running");
  EXPECT_EQ(parse_sleep("-1 0x7ffd7a 0x7f8a\n"), "no system call");
  EXPECT_EQ(parse_sleep("99999 0x0"), "syscall_99999");
  for (const char* text : {"", "\n", "x 0x1", "99999999999999 0x1"}) EXPECT_FALSE(parse_sleep(text)) << text;
}

class Proc : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(proc_); }
  void thread(const std::string& path, const std::string& name, char state, const std::string& file = {},
              const std::string& text = {}) {
    std::filesystem::create_directories(proc_ / path);
    std::ofstream(proc_ / path / "stat") << "1 (" << name << ") " << state << " 1 1\n";
    if (!file.empty()) std::ofstream(proc_ / path / file) << text;
  }
  std::filesystem::path proc_ = std::filesystem::path(testing::TempDir()) / ("asleep_proc" + std::to_string(getpid()));
};

TEST_F(Proc, ThreadsOfAllProcessesAreCounted) {
  thread("70/task/70", "a) Z (b", 'S', "syscall", "99998 0x0");
  thread("70/task/71", "x", 'S', "syscall", "99999 0x0");
  thread("80/task/80", "x", 'S', "syscall", "99999 0x0");
  thread("80/task/81", "x", 'S', "wchan", "futex_wait_queue");
  thread("80/task/82", "x", 'S', "wchan", "0");
  thread("80/task/83", "x", 'S');
  thread("80/task/84", "x", 'Z', "syscall", "99999 0x0");
  thread("80/task/85", "culprit-agent", 'S', "syscall", "99999 0x0");
  std::filesystem::create_directories(proc_ / "80/task/86");
  EXPECT_EQ(asleep_in({{.pid = 70}, {.pid = 80}, {.pid = 90}}, proc_.string()),
            "syscall_99999 (2), unknown (2), futex_wait_queue (1), syscall_99998 (1)");
  EXPECT_EQ(asleep_in({}, proc_.string()), "");
  EXPECT_EQ(asleep_in({{.pid = 90}}, proc_.string()), "") << "it is gone";
}

TEST(AsleepThreads, AChildThatSleeps) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const timespec time{1000, 0};
    nanosleep(&time, nullptr);
    _exit(0);
  }
  std::string asleep;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (asleep.find("sleep") == std::string::npos && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    asleep = asleep_in({{.pid = child}});
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_NE(asleep.find("nanosleep (1)"), std::string::npos) << asleep;
}

}  // namespace
}  // namespace culprit::record::sched
