#include "formats/io/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "support/temp_file.h"

namespace culprit::formats {
namespace {

using test::TempDir;

/// 80 MiB that compress to a few kilobytes.
std::string blanks() { return std::string(std::size_t{80} << 20, ' '); }

/// Reads to the end; the number of bytes, or the error.
Result<std::size_t> read_to_end(const std::string& path, Expansion expansion) {
  auto input = Input::open(path);
  if (!input) return input.error();
  input->limit(std::move(expansion));
  std::string part(std::size_t{1} << 20, '\0');
  std::size_t all = 0;
  while (true) {
    const auto got = input->read(part.data(), part.size());
    if (!got) return got.error();
    if (*got == 0) return all;
    all += *got;
  }
}

TEST(Input, CompressedTextHasALimit) {
  const TempDir dir;
  for (const std::string& path : {dir.file("a.gz", test::gzip(blanks())), dir.file("a.zst", test::zstd(blanks()))}) {
    const auto usual = read_to_end(path, Expansion());
    ASSERT_FALSE(usual) << path;
    EXPECT_EQ(usual.error().what, "expands to more than 200 times its size");
    EXPECT_EQ(usual.error().where, path);
    EXPECT_EQ(read_to_end(path, Expansion(0)).value(), blanks().size());
  }
}

TEST(Input, PlainTextHasNone) {
  const TempDir dir;
  EXPECT_EQ(read_to_end(dir.file("plain", blanks()), Expansion(1)).value(), blanks().size());
}

TEST(Input, APipeIntoWhichNobodyWritesCanBeStopped) {
  const TempDir dir;
  const std::string path = dir.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::stop_source stop;
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const auto input = Input::open(path, stop.get_token());
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().kind, ErrorKind::cancelled);
}

TEST(Input, APipeIsReadAsItIsWritten) {
  const TempDir dir;
  const std::string path = dir.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::jthread other([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    for (const std::string_view part : {"abc", "defg"}) {
      EXPECT_EQ(::write(fd, part.data(), part.size()), static_cast<ssize_t>(part.size()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ::close(fd);
  });
  EXPECT_EQ(read_to_end(path, Expansion()).value(), 7U);
}

TEST(Input, WhatPeopleRecordIsBelowIt) {
  const TempDir dir;
  std::string text;
  for (int i = 0; text.size() < (std::size_t{70} << 20); ++i)
    text += R"({"ph":"X","name":"aten::add","ts":)" + std::to_string(i * 17) + R"(,"dur":3,"pid":1,"tid":1},)";
  EXPECT_EQ(read_to_end(dir.file("trace.zst", test::zstd(text)), Expansion()).value(), text.size());
}

}  // namespace
}  // namespace culprit::formats
