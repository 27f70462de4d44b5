#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support/temp_file.h"

namespace culprit {
namespace {

TEST(ReadFile, GivesAllBytes) {
  const test::TempDir dir;
  const std::string content = std::string(100'000, 'x') + '\0' + "end";
  EXPECT_EQ(*read_file(dir.file("a", content)), content);
  EXPECT_EQ(*read_file(dir.file("b", "")), "");
}

TEST(ReadFile, ALargerFileIsAnErrorThatNamesItAndTheLimit) {
  const test::TempDir dir;
  const std::string path = dir.file("a", std::string(1025, 'x'));
  const auto text = read_file(path, 1024);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().where, path);
  EXPECT_EQ(text.error().what, "is larger than 1.00 KiB");
  EXPECT_TRUE(read_file(path, 1025).ok());
}

TEST(ReadFile, WhatCannotBeReadIsAnErrorWithTheReason) {
  const test::TempDir dir;
  EXPECT_EQ(read_file(dir.path("none")).error().what, "cannot be read: No such file or directory");
  EXPECT_EQ(read_file(dir.path()).error().what, "cannot be read: Is a directory");
}

TEST(ReadFile, DoesNotWaitForTheWriterOfAFifo) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(*read_file(dir.path("fifo")), "");
}

TEST(ReadBeginning, StopsAtTheLimit) {
  const test::TempDir dir;
  EXPECT_EQ(read_beginning(dir.file("a", "abcdef"), 4), "abcd");
  EXPECT_EQ(read_beginning(dir.file("a", "abc"), 4), "abc");
  EXPECT_EQ(read_beginning(dir.path("none")), std::nullopt);
  EXPECT_EQ(read_beginning(dir.path()), std::nullopt);
}

TEST(ReadBeginning, ReadsFilesOfProcThatClaimToBeEmpty) {
  const auto text = read_beginning("/proc/self/status");
  ASSERT_TRUE(text.has_value());
  EXPECT_TRUE(text->starts_with("Name:"));
}

}  // namespace
}  // namespace culprit
