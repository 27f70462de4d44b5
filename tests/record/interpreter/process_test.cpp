// Versions by the names of files, and names of code read from memory that may hold anything.
#include "record/interpreter/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace culprit::record::interpreter {
namespace {

TEST(Version, StandsInTheNameOfTheFile) {
  EXPECT_EQ(version_in("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"), "3.11");
  EXPECT_EQ(version_in("/usr/bin/python3.9"), "3.9");
  EXPECT_EQ(version_in("python3.13"), "3.13");
}

TEST(Version, OfOtherFilesThereIsNone) {
  for (const char* file : {"", "/usr/bin/python3", "/usr/bin/python2.7", "/usr/bin/python3.13t", "/usr/bin/python3.12d",
                           "/usr/lib/libpython3.13t.so.1.0", "/usr/lib/libpython3.so", "/srv/python3.12/bin/app",
                           "/usr/bin/python3.11-config"})
    EXPECT_EQ(version_in(file), std::nullopt) << file;
}

TEST(Layout, IsKnownOfWhatIsSupported) {
  for (const char* version : {"3.9", "3.10", "3.11", "3.12", "3.13"}) {
    const Layout* layout = layout_of(version);
    ASSERT_NE(layout, nullptr) << version;
    // What the kernel's programs read of a frame, and the recorder of a code object.
    EXPECT_LE(layout->frames.frame_back, 64U);
    EXPECT_LE(layout->frames.frame_code, 64U);
    EXPECT_LT(layout->frames.frame_entry, 72U);
    EXPECT_LE(layout->code_name, 128U);
  }
  EXPECT_EQ(layout_of("3.8"), nullptr);
  EXPECT_EQ(layout_of("3.99"), nullptr);
}

/// Objects of Python 3.12 in this process's own memory.
class Objects : public testing::Test {
 protected:
  static constexpr std::uint64_t kCodeType = 0x4711;
  enum State : std::uint32_t { kAscii = 1 << 2 | 1 << 5 | 1 << 6, kLatin = 1 << 2 | 1 << 5, kWide = 2 << 2 | 1 << 5 };

  std::uint64_t string(const std::string& bytes, std::uint64_t length, std::uint32_t state) {
    auto& object = objects_.emplace_back(state == kAscii ? 40 : 56, '\0');
    object.resize(object.size() + bytes.size() + 8);
    std::memcpy(object.data() + 16, &length, sizeof length);
    std::memcpy(object.data() + 32, &state, sizeof state);
    std::memcpy(object.data() + (state == kAscii ? 40 : 56), bytes.data(), bytes.size());
    return address(object);
  }
  std::uint64_t code(std::uint64_t name, std::uint64_t file, std::int32_t line) {
    auto& object = objects_.emplace_back(200, '\0');
    const std::uint64_t references = 1;
    std::memcpy(object.data(), &references, sizeof references);
    std::memcpy(object.data() + 8, &kCodeType, sizeof kCodeType);
    std::memcpy(object.data() + 68, &line, sizeof line);
    std::memcpy(object.data() + 112, &file, sizeof file);
    std::memcpy(object.data() + 128, &name, sizeof name);
    return address(object);
  }
  static std::uint64_t address(const std::vector<char>& object) {
    return reinterpret_cast<std::uint64_t>(object.data());
  }
  std::string read(std::uint64_t at) { return string_at(getpid(), layout_, at); }

  const Layout& layout_ = *layout_of("3.12");
  std::vector<std::vector<char>> objects_ = [] {
    std::vector<std::vector<char>> all;
    all.reserve(64);
    return all;
  }();
};

TEST_F(Objects, StringsOfEveryWidthAreText) {
  EXPECT_EQ(read(string("Scheduler.run", 13, kAscii)), "Scheduler.run");
  EXPECT_EQ(read(string("na\xefve", 5, kLatin)), "na\u00efve");
  EXPECT_EQ(read(string(std::string("\x91\x65\x2c\x67", 4), 2, kWide)), "\u6591\u672c");
  EXPECT_EQ(read(string("", 0, kAscii)), "");
}

TEST_F(Objects, WhatWouldBreakALineOrAStackIsReplaced) {
  EXPECT_EQ(read(string("a;b\nc\x1b[31m", 10, kAscii)), "a:b?c?[31m");
  EXPECT_EQ(read(string(std::string("\x00\xd8", 2), 1, kWide)), "\xef\xbf\xbd");  // half of a pair
}

TEST_F(Objects, OfALongStringTheEndIsKept) {
  const std::string text = read(string(std::string(300, 'a') + "/scheduler.py", 313, kAscii));
  EXPECT_EQ(text.size(), 200U);
  EXPECT_TRUE(text.ends_with("/scheduler.py"));
}

TEST_F(Objects, MemoryThatHoldsNoStringGivesNone) {
  EXPECT_EQ(read(0), "");
  EXPECT_EQ(read(1), "");
  EXPECT_EQ(read(~std::uint64_t{0} - 8), "");
  EXPECT_EQ(read(string("abc", 3, 0)), "");
  EXPECT_EQ(read(string("abc", 3, 7 << 2 | 1 << 5)), "");
  EXPECT_EQ(read(string("abc", ~std::uint64_t{0}, kAscii)), "");
  EXPECT_EQ(read(string("abc", std::uint64_t{1} << 62, kWide)), "");
}

TEST_F(Objects, CodeHasItsFunctionFileAndLine) {
  CodeNames names(getpid(), layout_, kCodeType);
  const auto name = string("Pool.take", 9, kAscii);
  const auto file = string("/srv/app/pool.py", 16, kAscii);
  const auto at = code(name, file, 12);
  EXPECT_EQ(names.find(at)->function, "Pool.take (pool.py:12)");
  EXPECT_EQ(names.find(at)->kind, perfetto::CodeFrame::Kind::interpreted);
  EXPECT_EQ(names.find(at), names.find(at)) << "read once";
}

TEST_F(Objects, MemoryThatBecomesAnotherFunctionsHasItsName) {
  CodeNames names(getpid(), layout_, kCodeType);
  const auto file = string("/srv/app/pool.py", 16, kAscii);
  const auto at = code(string("first", 5, kAscii), file, 12);
  EXPECT_EQ(names.find(at)->function, "first (pool.py:12)");
  const auto other = string("second", 6, kAscii);
  std::memcpy(reinterpret_cast<char*>(at) + 128, &other, sizeof other);  // NOLINT(performance-no-int-to-ptr)
  EXPECT_EQ(names.find(at)->function, "second (pool.py:12)");
}

TEST_F(Objects, CodeThatIsNotThereIsPythons) {
  CodeNames names(getpid(), layout_, kCodeType);
  EXPECT_EQ(names.find(8)->function, "[python]");
  EXPECT_EQ(names.find(code(0, 0, 0))->function, "[python]");
}

TEST_F(Objects, MemoryThatWasGivenBackNamesNobody) {
  CodeNames names(getpid(), layout_, kCodeType);
  const auto at = code(string("first", 5, kAscii), string("/srv/app/pool.py", 16, kAscii), 12);
  const std::uint64_t next_free = 0x7f0012345678;
  std::memcpy(reinterpret_cast<char*>(at), &next_free, sizeof next_free);  // NOLINT(performance-no-int-to-ptr)
  EXPECT_EQ(names.find(at)->function, "[python]");
}

TEST_F(Objects, TextOfSomebodyIsNoName) {
  CodeNames names(getpid(), layout_, kCodeType);
  const auto prompt = string("tell me a story", 15, kAscii);
  EXPECT_EQ(names.find(code(prompt, string("/srv/app.py", 11, kAscii), 1))->function, "[python]");
  EXPECT_EQ(names.find(code(string("run", 3, kAscii), prompt, 1))->function, "[python]");
}

TEST(InterpreterOf, AProgramThatIsNoPythonIsNone) {
  EXPECT_EQ(interpreter_of(getpid()).kind, Kind::none);
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  EXPECT_EQ(interpreter_of(gone).kind, Kind::none);
}

}  // namespace
}  // namespace culprit::record::interpreter
