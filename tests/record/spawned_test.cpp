#include "record/spawned.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_file.h"

namespace culprit::record {
namespace {

TEST(Spawned, AChildIsNoticed) {
  Spawned spawned;
  EXPECT_TRUE(spawned.any());
  EXPECT_TRUE(spawned.any());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_GT(child, 0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(spawned.any());
  EXPECT_TRUE(spawned.any());
}

TEST(Spawned, NobodyCameWhereTheLastNumberIsTheSame) {
  const test::TempDir dir;
  Spawned spawned(dir.file("loadavg", "0.10 0.20 0.30 1/234 5678\n").c_str());
  EXPECT_TRUE(spawned.any());
  EXPECT_TRUE(spawned.any());  // whoever has a number may not be in /proc yet
  EXPECT_FALSE(spawned.any());
  EXPECT_FALSE(spawned.any());
}

TEST(Spawned, SomebodyMayHaveComeWhereTheKernelDoesNotTell) {
  Spawned missing("/nonexistent/loadavg");
  const test::TempDir dir;
  Spawned nothing(dir.file("empty", "").c_str());
  Spawned other(dir.file("word", "loadavg").c_str());
  Spawned zero(dir.file("zero", "0.00 0.00 0.00 0/0 0\n").c_str());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(missing.any());
    EXPECT_TRUE(nothing.any());
    EXPECT_TRUE(other.any());
    EXPECT_TRUE(zero.any());
  }
}

}  // namespace
}  // namespace culprit::record
