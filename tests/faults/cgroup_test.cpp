#include "faults/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/file.h"
#include "support/child_process.h"

namespace culprit::faults {
namespace {

/// A tree of plain files that looks like a cgroup mount; the kernel's own behaviour is tested where it is real.
struct FakeTree : test::Folder {
  CgroupRoots roots{path + "/proc", path + "/mounts"};
  ProcessId self = process_facts(getpid())->id;
  void mount(const std::string& type, const std::string& options) {
    write("mounts", fmt::format("none {}/cg {} {} 0 0\n", path, type, options));
  }
  void belongs(const std::string& text) { write(fmt::format("proc/{}/cgroup", getpid()), text); }
};

struct Version2 : FakeTree {
  Version2() {
    mount("cgroup2", "rw");
    write("cg/cgroup.controllers", "cpuset cpu memory\n");
    write("cg/app/cgroup.controllers", "cpu\n");
    write("cg/cgroup.subtree_control", "cpu memory\n");
    belongs("0::/app\n");
  }
};

TEST(Cgroup, Version1IsFoundByItsControllerAlsoWhenMountedTogether) {
  FakeTree tree;
  tree.mount("cgroup", "rw,cpu,cpuacct");
  tree.belongs("9:memory:/m\n3:cpu,cpuacct:/a/b\n2:cpuset:/c\n0::/z\n");
  tree.write("cg/a/b/cpu.cfs_quota_us", "-1\n");
  const auto group = cpu_cgroup_of(getpid(), tree.roots);
  ASSERT_TRUE(group) << to_string(group.error());
  EXPECT_FALSE(group->version2);
  EXPECT_EQ(group->path, "/a/b");
}

TEST(Cgroup, AGroupOutsideOfAContainerIsRefused) {
  FakeTree tree;
  tree.mount("cgroup", "rw,cpu");
  tree.belongs("3:cpu:/../other\n");
  EXPECT_FALSE(cpu_cgroup_of(getpid(), tree.roots));
  tree.belongs("3:cpu:/not/mounted\n");
  EXPECT_FALSE(cpu_cgroup_of(getpid(), tree.roots));
  tree.mount("cgroup", "rw,cpuset");  // not the controller cpu
  EXPECT_FALSE(cpu_cgroup_of(getpid(), tree.roots));
}

TEST(Cgroup, TheTightestQuotaUpwardsLimits) {
  FakeTree tree;
  tree.write("cg/a/cpu.cfs_quota_us", "50000");
  tree.write("cg/a/cpu.cfs_period_us", "100000");
  tree.write("cg/a/b/cpu.cfs_quota_us", "-1");
  tree.write("cg/a/b/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(cpu_limit_of({false, tree.path + "/cg", "/a/b"}, 4), 0.5);
  EXPECT_DOUBLE_EQ(cpu_limit_of({false, tree.path + "/cg", "/"}, 4), 4);
}

TEST(Cgroup, Version1GetsAnOwnChild) {
  FakeTree tree;
  tree.mount("cgroup", "rw,cpu");
  tree.belongs("3:cpu:/a\n");
  tree.write("cg/a/cpu.cfs_quota_us", "-1");
  const auto plan = plan_quota({tree.self}, 0.25, "own", tree.roots);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->group, tree.path + "/cg/a/own");
  EXPECT_EQ(plan->quota_text, "25000");
  EXPECT_EQ(plan->undo, (std::vector<Undo>{{Undo::Kind::leave_cgroup, {plan->group, tree.path + "/cg/a"}}}));
}

TEST(Cgroup, Version2GroupOfTheTargetAloneGetsTheQuotaAndItsOldOneBack) {
  Version2 tree;
  const std::string file = tree.write("cg/app/cpu.max", "max 100000\n");
  tree.write("cg/app/cgroup.procs", fmt::format("{}\n", getpid()));
  const auto plan = plan_quota({tree.self}, 0.25, "own", tree.roots);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_FALSE(plan->own);
  ASSERT_TRUE(apply_quota(*plan));
  EXPECT_THAT(read_beginning(file), testing::Optional(testing::StartsWith("25000 100000")));
  EXPECT_TRUE(execute_all(plan->undo).empty());
  EXPECT_THAT(read_beginning(file), testing::Optional(testing::StartsWith("max 100000")));
}

TEST(Cgroup, Version2SharedGroupMovesTheTargetToASiblingUnlessThatLiftsALimit) {
  Version2 tree;
  tree.write("cg/app/cpu.max", "max 100000\n");
  tree.write("cg/app/cgroup.procs", fmt::format("{}\n77777777\n", getpid()));
  tree.write("cg/app/memory.max", "max\n");
  const auto plan = plan_quota({tree.self}, 0.25, "own", tree.roots);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->group, tree.path + "/cg/own");
  tree.write("cg/app/memory.max", "1000000\n");
  EXPECT_FALSE(plan_quota({tree.self}, 0.25, "own", tree.roots));
  tree.write("cg/app/memory.max", "max\n");
  tree.write("cg/cgroup.subtree_control", "memory\n");
  EXPECT_FALSE(plan_quota({tree.self}, 0.25, "own", tree.roots));
}

TEST(Cgroup, ProcessesOfSeveralGroupsAreRefused) {
  Version2 tree;
  const test::Child child;
  tree.write(fmt::format("proc/{}/cgroup", child.pid), "0::/other\n");
  tree.write("cg/other/cgroup.procs", "");
  EXPECT_FALSE(plan_quota({tree.self, process_facts(child.pid)->id}, 0.25, "own", tree.roots));
}

TEST(Cgroup, LeavingWhatIsNotThereIsDone) { EXPECT_EQ(leave_cgroup("/nothing/here", "/nothing"), std::nullopt); }

}  // namespace
}  // namespace culprit::faults
