#include "record/collector/mappings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "support/temp_file.h"

namespace culprit::record {
namespace {

TEST(Mappings, OfThisProcessHoldItsOwnProgram) {
  const auto mappings = executable_mappings(getpid());
  const auto here = reinterpret_cast<std::uint64_t>(&executable_mappings);
  const auto own = std::ranges::find_if(
      mappings, [&](const Mapping& mapping) { return mapping.begin <= here && here < mapping.end; });
  ASSERT_NE(own, mappings.end());
  EXPECT_TRUE(own->path.ends_with("test_record_collector")) << own->path;
}

TEST(Mappings, OnlyCodeWithItsPlaceInTheFile) {
  const culprit::test::TempDir proc;
  ASSERT_TRUE(std::filesystem::create_directory(proc.path() + "/7"));
  (void)proc.file("7/maps",
                  "00400000-00401000 r--p 00000000 08:01 1234                       /usr/bin/a b\n"
                  "00401000-00403000 r-xp 00001000 08:01 1234                       /usr/bin/a b\n"
                  "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
                  "nonsense\n"
                  "7fff00000000-7fff00001000 r-xp 00000000 00:00 0                  [vdso]\n");
  const auto mappings = executable_mappings(7, proc.path());
  ASSERT_EQ(mappings.size(), 3U);
  EXPECT_EQ(mappings[0].begin, 0x401000U);
  EXPECT_EQ(mappings[0].end, 0x403000U);
  EXPECT_EQ(mappings[0].offset, 0x1000U);
  EXPECT_EQ(mappings[0].path, "/usr/bin/a b");
  EXPECT_EQ(mappings[0].identity, "08:01 1234");
  EXPECT_EQ(mappings[1].path, "");
  EXPECT_EQ(mappings[2].path, "[vdso]");
}

TEST(Mappings, WhatALibraryAddsToWhatIsExecutable) {
  const culprit::test::TempDir proc;
  ASSERT_TRUE(std::filesystem::create_directory(proc.path() + "/7"));
  (void)proc.file("7/status", "Name:\ta b\nVmRSS:\t    9 kB\nVmExe:\t       4 kB\nVmLib:\t    1500 kB\nThreads:\t1\n");
  EXPECT_EQ(executable_kib(7, proc.path()), 1504U);
  (void)proc.file("7/status", "Name:\tkthread\nThreads:\t1\n");
  EXPECT_EQ(executable_kib(7, proc.path()), std::nullopt);
  EXPECT_EQ(executable_kib(8, proc.path()), std::nullopt);
}

TEST(Mappings, OfWhatIsGoneThereAreNone) { EXPECT_TRUE(executable_mappings(999'999'999).empty()); }

}  // namespace
}  // namespace culprit::record
