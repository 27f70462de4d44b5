#include "record/collector/target_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/file.h"
#include "support/temp_file.h"

namespace culprit::record {
namespace {

namespace fs = std::filesystem;

/// A root of a target with /lib/good.so in it, and a file beside it that is none of the target's.
struct Root : testing::Test {
  test::TempDir dir;
  std::string root = dir.path("root");
  void SetUp() override {
    fs::create_directories(root + "/lib");
    std::ofstream(root + "/lib/good.so") << "good";
    std::ofstream(dir.path("secret")) << "secret";
  }
};

TEST_F(Root, ARegularFileIsFoundAndCanBeOpened) {
  const TargetFile file = open_target_file(root, "/lib/good.so");
  ASSERT_TRUE(file);
  EXPECT_EQ(*read_file(file.path()), "good");
}

TEST_F(Root, WhatWasFoundStaysWhatItIs) {
  const TargetFile file = open_target_file(root, "/lib/good.so");
  fs::remove(root + "/lib/good.so");
  fs::create_symlink(dir.path("secret"), root + "/lib/good.so");
  EXPECT_EQ(*read_file(file.path()), "good");
}

TEST_F(Root, LinksOutOfTheRootAreNotFollowed) {
  fs::create_symlink(dir.path("secret"), root + "/lib/absolute.so");
  fs::create_symlink("../../secret", root + "/lib/relative.so");
  fs::create_directory_symlink(dir.path(), root + "/outside");
  for (const char* path :
       {"/lib/absolute.so", "/lib/relative.so", "/outside/secret", "/../secret", "/lib/../../secret"})
    EXPECT_FALSE(open_target_file(root, path)) << path;
}

TEST_F(Root, OnlyRegularFilesCount) {
  ASSERT_EQ(mkfifo((root + "/lib/pipe.so").c_str(), 0600), 0);
  for (const char* path : {"/lib/pipe.so", "/lib", "/lib/missing.so", ""})
    EXPECT_FALSE(open_target_file(root, path)) << path;
  EXPECT_FALSE(open_target_file("/", "/dev/zero"));
  EXPECT_FALSE(open_target_file("/proc/self/root", "/dev/zero"));
  EXPECT_FALSE(open_target_file("/no/such/root", "/lib/good.so"));
  EXPECT_EQ(TargetFile().path(), "");
}

TEST_F(Root, LinksOfFoldersStayInTheRoot) {
  fs::create_directory_symlink("/lib", root + "/lib64");
  fs::create_directory_symlink("/", root + "/everything");
  const TargetFile folder = open_target_folder(root, "/lib64");
  ASSERT_TRUE(folder);
  EXPECT_TRUE(fs::exists(folder.path() + "/good.so"));
  EXPECT_FALSE(fs::exists(open_target_folder(root, "/everything").path() + "/secret"));
}

TEST_F(Root, TheIdentityIsTheKernels) {
  std::ifstream maps("/proc/self/maps");
  const std::string own = fs::read_symlink("/proc/self/exe");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(own) == std::string::npos) continue;
    EXPECT_NE(line.find(" " + open_target_file("/", own).identity() + " "), std::string::npos) << line;
    return;
  }
  FAIL() << "this program is not in its own maps";
}

}  // namespace
}  // namespace culprit::record
