// Threads that stood still before the recording.
#include "record/sched/stopped.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace culprit::record::sched {
namespace {

/// As of proc(5), last on CPU 3.
std::string stat(const std::string& tid, const std::string& name, const std::string& state) {
  std::string text = tid + " (" + name + ") " + state;
  for (int field = 4; field <= 52; ++field) text += field == 39 ? " 3" : " 1";
  return text + "\n";
}

TEST(StoppedThreads, TheStateAndTheLastCpuAreRead) {
  for (const char* state : {"T", "t"}) {
    const auto thread = parse_stopped(stat("70", "a worker", state));
    ASSERT_TRUE(thread.has_value());
    EXPECT_EQ(thread->tid, 70);
    EXPECT_EQ(thread->cpu, 3U);
    EXPECT_EQ(thread->name, "a worker");
  }
  EXPECT_EQ(parse_stopped(stat("70", "a) R (b", "T"))->name, "a) R (b");
}

TEST(StoppedThreads, WhoRunsOrSleepsIsNone) {
  for (const char* state : {"R", "S", "D", "Z", "I"}) EXPECT_FALSE(parse_stopped(stat("70", "x", state))) << state;
}

TEST(StoppedThreads, WhatIsNoStatIsNone) {
  for (const char* text : {"", "70", "70 (x", "70 (x) ", "70 (x) T", "x (x) T 1 1", ") T ("})
    EXPECT_FALSE(parse_stopped(text)) << text;
  std::string words = stat("many", "x", "T");
  EXPECT_FALSE(parse_stopped(words));
}

TEST(StoppedThreads, AllThreadsOfAProcessThatIsStopped) {
  const std::filesystem::path proc =
      std::filesystem::path(testing::TempDir()) / ("stopped_proc" + std::to_string(getpid()));
  std::filesystem::remove_all(proc);
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((proc / path).parent_path());
    std::ofstream(proc / path) << text;
  };
  put("70/stat", stat("70", "x", "T"));
  put("70/task/70/stat", stat("70", "x", "T"));
  put("70/task/71/stat", stat("71", "y", "T"));
  put("80/stat", stat("80", "x", "S"));
  put("80/task/80/stat", stat("80", "x", "S"));
  put("80/task/81/stat", stat("81", "x", "t"));
  EXPECT_EQ(stopped_threads(70, proc).size(), 2U);
  EXPECT_EQ(stopped_threads(70, proc)[0].tgid, 70);
  EXPECT_TRUE(stopped_threads(80, proc).empty());
  EXPECT_TRUE(stopped_threads(90, proc).empty()) << "it is gone";
  std::filesystem::remove_all(proc);
}

TEST(StoppedThreads, AChildThatASignalStopped) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_TRUE(stopped_threads(child).empty());
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  const auto threads = stopped_threads(child);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].tid, child);
}

}  // namespace
}  // namespace culprit::record::sched
