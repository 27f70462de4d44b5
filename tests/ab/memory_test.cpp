#include "ab/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace culprit::ab {
namespace {

namespace fs = std::filesystem;

/// A machine of 8 GB with half of it free, and process 7 in a group.
class EnoughMemory : public testing::Test {
 protected:
  EnoughMemory() { put("proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 1 kB\nMemAvailable: 4000000 kB\n"); }
  ~EnoughMemory() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) const {
    const fs::path path = fs::path(root_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void version2() const {
    put("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("proc/7/cgroup", "0::/pod/server\n");
    put("sys/fs/cgroup/pod/server/memory.max", "max\n");
    put("sys/fs/cgroup/pod/server/memory.current", "990000000\n");
    put("sys/fs/cgroup/pod/memory.max", "1000000000\n");
    put("sys/fs/cgroup/pod/memory.current", "990000000\n");
  }
  void version1() const {
    put("proc/self/mountinfo", "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("proc/7/cgroup", "4:memory:/server\n");
    put("sys/fs/cgroup/memory/server/memory.usage_in_bytes", "990000000\n");
  }
  [[nodiscard]] Status enough() const { return enough_memory({6, 7}, root_); }

  std::string root_ = testing::TempDir() + "enough-memory-" + std::to_string(getpid());
};

TEST_F(EnoughMemory, IsAskedOfTheMachine) {
  EXPECT_TRUE(enough());
  put("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 100000 kB\n");
  const Status status = enough();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().where, "/proc/meminfo");
}

TEST_F(EnoughMemory, IsAskedOfAGroupAboveThatOfTheSide) {
  version2();
  const Status status = enough();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::environment);
  EXPECT_EQ(status.error().where, root_ + "/sys/fs/cgroup/pod");
  put("sys/fs/cgroup/pod/memory.current", "900000000\n");
  EXPECT_TRUE(enough());
}

TEST_F(EnoughMemory, PagesOfFilesAreFree) {
  version2();
  put("sys/fs/cgroup/pod/memory.stat", "anon 900000000\nfile 90000000\ninactive_file 60000000\nactive_file 20000000\n");
  EXPECT_TRUE(enough());
  put("sys/fs/cgroup/pod/memory.stat", "anon 985000000\nfile 5000000\ninactive_file 3000000\nactive_file 2000000\n");
  EXPECT_FALSE(enough());
}

TEST_F(EnoughMemory, IsAskedOfGroupsOfVersion1) {
  version1();
  put("sys/fs/cgroup/memory/server/memory.limit_in_bytes", "1000000000\n");
  EXPECT_FALSE(enough());
  put("sys/fs/cgroup/memory/server/memory.stat", "inactive_file 0\ntotal_inactive_file 100000000\n");
  EXPECT_TRUE(enough());
}

TEST_F(EnoughMemory, NoLimitOfVersion1IsNone) {
  version1();
  put("sys/fs/cgroup/memory/server/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/server/memory.usage_in_bytes", "9223372036854771000\n");
  EXPECT_TRUE(enough());
}

}  // namespace
}  // namespace culprit::ab
