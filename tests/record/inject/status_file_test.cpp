// What the kernel says of a process, line by line.
#include "record/inject/status_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>

namespace culprit::record::inject {
namespace {

TEST(StatusFile, ValuesStandBehindTheirNames) {
  EXPECT_EQ(number_in("/proc/self/status", "PPid:"), getppid());
  EXPECT_EQ(value_in("/proc/self/status", "Tgid:"), std::to_string(getpid()));
  EXPECT_EQ(value_in("/proc/self/status", "NoSuchName:"), "");
  EXPECT_EQ(number_in("/proc/self/status", "Name:"), 0);
  EXPECT_EQ(number_in("/proc/self/none", "PPid:"), 0);
}

TEST(StatusFile, TheStackBeginsElsewhereInAnotherProgram) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "100", nullptr);
    _exit(127);
  }
  const std::uint64_t own = start_of_stack(getpid());
  EXPECT_NE(own, 0U);
  EXPECT_EQ(start_of_stack(getpid()), own);
  std::uint64_t other = own;  // none for a moment, while it becomes another program
  for (int i = 0; i < 1000 && (other == own || other == 0); ++i) {
    usleep(10000);
    other = start_of_stack(child);
  }
  EXPECT_NE(other, own);
  EXPECT_NE(other, 0U);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(start_of_stack(child), 0U);
}

}  // namespace
}  // namespace culprit::record::inject
