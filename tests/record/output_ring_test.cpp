#include "record/output_ring.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_file.h"

namespace culprit::record {
namespace {

TEST(OutputRing, NumbersStandBeforeTheEnding) {
  EXPECT_EQ(numbered_output("run.pftrace", 1), "run.0001.pftrace");
  EXPECT_EQ(numbered_output("/a/b.c/run", 12), "/a/b.c/run.0012");
  EXPECT_EQ(numbered_output("./a.b.pftrace", 12345), "./a.b.12345.pftrace");
}

TEST(OutputRing, ExistingNumbersAreRefused) {
  const test::TempDir dir;
  for (const char* name : {"run.pftrace", "run.old.pftrace", "run.1.json", "other.0001.pftrace", "run..pftrace"})
    static_cast<void>(dir.file(name, "x"));
  EXPECT_TRUE(refuse_numbered(dir.path("run.pftrace")));
  static_cast<void>(dir.file("run.0012.pftrace", "x"));
  const Status refused = refuse_numbered(dir.path("run.pftrace"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("run.0012.pftrace"), std::string::npos);
}

TEST(OutputRing, TheOldestIsRemovedUnlessItIsAnotherFileByNow) {
  const test::TempDir dir;
  const auto exists = [&](const char* name) { return std::filesystem::exists(dir.path(name)); };
  OutputRing ring(2);
  ring.add(dir.file("1", "x"));
  EXPECT_TRUE(exists("1")) << "it and the one that is written are two";
  ring.add(dir.file("2", "x"));
  EXPECT_FALSE(exists("1"));
  std::filesystem::rename(dir.path("2"), dir.path("mine"));
  static_cast<void>(dir.file("2", "of somebody else"));
  ring.add(dir.file("3", "x"));
  EXPECT_TRUE(exists("2"));
  EXPECT_TRUE(exists("mine"));
  ring.add(dir.file("4", "x"));
  EXPECT_FALSE(exists("3"));
  OutputRing all(0);
  for (const char* name : {"a", "b", "c"}) all.add(dir.file(name, "x"));
  EXPECT_TRUE(exists("a"));
}

}  // namespace
}  // namespace culprit::record
