#include "record/process_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "support/fake_machine.h"

namespace culprit::record {
namespace {

const std::string kId = std::string(60, 'a') + "bcde";
const std::string kOther = std::string(60, 'a') + "ffff";

std::string text_of(const Result<std::string>& found) { return found ? *found : std::string(); }

/// Version 2 with a service, and version 1 of cpu.
struct ProcessGroup : testing::Test {
  test::FakeMachine machine;
  void SetUp() override {
    machine.put("/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                "42 31 0:39 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    group("/unified", "");
    group("/unified/web.service", "11\n12\n");
    group("/unified/web.service/worker", "15\n12\n");
    group("/cpu", "");
    group("/cpu/batch", "20\n");
  }
  void group(const std::string& path, const std::string& processes) const {
    machine.put("/sys/fs/cgroup" + path + "/cgroup.procs", processes);
  }
  void process(int pid, const std::string& groups) const { machine.put(fmt::format("/proc/{}/cgroup", pid), groups); }
};

TEST_F(ProcessGroup, IsFoundByFolderAndAsTheKernelNamesIt) {
  const std::string folder = machine.root() + "/sys/fs/cgroup/unified/web.service";
  for (const char* path : {"/sys/fs/cgroup/unified/web.service", "/web.service", "web.service"})
    EXPECT_EQ(text_of(find_group(path, machine.root())), folder) << path;
  EXPECT_EQ(text_of(find_group("/batch", machine.root())), machine.root() + "/sys/fs/cgroup/cpu/batch");
  for (const char* path : {"", "/none", "/../cpu/batch", "batch/.."}) {
    const auto found = find_group(path, machine.root());
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().kind, ErrorKind::input);
  }
}

TEST_F(ProcessGroup, HoldsTheProcessesOfTheGroupsBelow) {
  EXPECT_EQ(group_processes(machine.root() + "/sys/fs/cgroup/unified/web.service"),
            (std::vector<std::int64_t>{11, 12, 15}));
  EXPECT_TRUE(group_processes(machine.root() + "/nonexistent").empty());
}

TEST_F(ProcessGroup, ContainersAreFoundByTheBeginOfTheirId) {
  for (const std::string& name :
       {"docker-" + kId + ".scope", "cri-containerd-" + kId + ".scope", "libpod-" + kId + ".scope",
        "crio-" + kId + ".scope", kId, "kubepods-burstable-pod1.slice:cri-containerd:" + kId}) {
    group("/unified/system.slice/" + name, "30\n");
    group("/unified/system.slice/" + name + "/inner", "31\n");
    process(30, "0::/system.slice/" + name + "\n");
    process(31, "0::/system.slice/" + name + "/inner\n");
    EXPECT_EQ(text_of(find_container("aaaaaaa", machine.root())),
              machine.root() + "/sys/fs/cgroup/unified/system.slice/" + name);
  }
}

TEST_F(ProcessGroup, OfVersionOneAndByName) {
  group("/cpu/docker/" + kId, "30\n");
  process(30, "9:memory:/docker/" + kId + "\n1:cpu:/docker/" + kId + "\n0::/\n");
  group("/unified/lxc.payload.web", "40\n");
  process(40, "0::/lxc.payload.web\n");
  EXPECT_EQ(text_of(find_container(kId, machine.root())), machine.root() + "/sys/fs/cgroup/cpu/docker/" + kId);
  EXPECT_EQ(text_of(find_container("web", machine.root())), machine.root() + "/sys/fs/cgroup/unified/lxc.payload.web");
  EXPECT_FALSE(find_container("we", machine.root()));
}

TEST_F(ProcessGroup, OneThatCannotBeToldIsAnError) {
  process(30, "0::/docker-" + kId + ".scope\n");
  process(31, "0::/docker-" + kOther + ".scope\n");
  process(32, "0::/libpod-conmon-" + std::string(64, 'c') + ".scope\n");
  const auto both = find_container("aaaa", machine.root());
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().kind, ErrorKind::usage);
  EXPECT_NE(both.error().what.find(kOther), std::string::npos);
  EXPECT_EQ(find_container("cccc", machine.root()).error().kind, ErrorKind::input);
  EXPECT_EQ(find_container("", machine.root()).error().kind, ErrorKind::input);
  EXPECT_EQ(find_container(kOther, machine.root()).error().kind, ErrorKind::environment) << "its group is not mounted";
}

}  // namespace
}  // namespace culprit::record
