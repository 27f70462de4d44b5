// What other recorders have in a process, as /proc tells it.
#include "record/inject/others.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace culprit::record::inject {
namespace {

namespace fs = std::filesystem;

class Others : public testing::Test {
 protected:
  Others() {
    std::string name = (fs::temp_directory_path() / "culprit-proc-XXXXXX").string();
    proc_ = mkdtemp(name.data());
    fs::create_directories(proc_ / "7" / "fd");
  }
  ~Others() override { fs::remove_all(proc_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((proc_ / name).parent_path());
    std::ofstream(proc_ / name) << text;
  }
  fs::path proc_;
};

TEST_F(Others, TracesAreToldApart) {
  fs::create_symlink("/memfd:culprit-ring (deleted)", proc_ / "7/fd/5");
  fs::create_symlink("/memfd:culprit-agent (deleted)", proc_ / "7/fd/12");
  fs::create_symlink("/memfd:other (deleted)", proc_ / "7/fd/6");
  fs::create_symlink("/tmp/culprit-ring", proc_ / "7/fd/8");
  write("7/maps",
        "1000-2000 r--p 00000000 00:01 9 /memfd:culprit-agent (deleted)\n"
        "2000-3000 r-xp 00001000 00:01 9 /memfd:culprit-agent (deleted)\n"
        "8000-9000 rw-p 00000000 00:01 8 /memfd:culprit-ring (deleted)\n"
        "a000-b000 rw-s 00000000 00:01 7 /memfd:culprit-ring (deleted)\n"
        "c000-d000 rw-p 00000000 00:00 0 [heap]\n");
  const Traces traces = traces_in(7, proc_);
  EXPECT_EQ(std::set(traces.descriptors.begin(), traces.descriptors.end()), (std::set<std::uint64_t>{5, 12}));
  ASSERT_EQ(traces.stacks.size(), 1U);
  EXPECT_EQ(traces.stacks[0].begin, 0x8000U);
  EXPECT_EQ(traces.stacks[0].end, 0x9000U);
  EXPECT_EQ(traces.libraries, std::vector<std::uint64_t>{0x2000});
  EXPECT_EQ(traces.rings, std::vector<std::uint64_t>{0xa000});
}

TEST_F(Others, ATracerOfAnyThreadIsOneButForOnesOwn) {
  write("7/task/7/status", "Name:\tmain\nState:\tS (sleeping)\nTracerPid:\t0\n");
  write("7/task/8/status", "Name:\tother\nState:\tt (tracing stop)\nTracerPid:\t41\n");
  write("41/status", "Name:\tthread\nTgid:\t40\n");
  EXPECT_EQ(tracer_of(7, 0, proc_), 40);
  EXPECT_EQ(tracer_of(7, 41, proc_), 0);
  write("7/task/8/status", "Name:\tother\nTracerPid:\t51\n");
  EXPECT_EQ(tracer_of(7, 41, proc_), 51) << "of which no more is known";
}

TEST(OthersHere, ADescriptorIsWhatItIsNow) {
  const int fd = memfd_create("culprit-ring", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(is_memory_called(getpid(), static_cast<std::uint64_t>(fd), kRingName));
  EXPECT_FALSE(is_memory_called(getpid(), static_cast<std::uint64_t>(fd), kAgentName));
  ASSERT_EQ(dup2(STDIN_FILENO, fd), fd);
  EXPECT_FALSE(is_memory_called(getpid(), static_cast<std::uint64_t>(fd), kRingName));
  close(fd);
}

TEST(OthersHere, AProcessWithoutAnAgentIsFree) {
  EXPECT_TRUE(has_no_agent(getpid(), traces_in(getpid())));
  EXPECT_FALSE(has_ended(getpid(), gettid()));
}

}  // namespace
}  // namespace culprit::record::inject
