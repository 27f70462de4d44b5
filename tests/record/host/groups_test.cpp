#include "record/host/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using test::out_to;
using test::Samples;

constexpr const char* kMounts1 =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr const char* kMounts2 = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

struct Groups : testing::Test {
  FakeMachine machine;
  Samples samples;
  Emitter emitter{out_to(samples)};

  void version1() const {
    machine.put("/proc/self/mountinfo", kMounts1);
    machine.put("/proc/42/cgroup", "4:memory:/job\n3:cpuset:/\n1:cpu,cpuacct:/pod/job\n0::/\n");
    cpu1("/pod/job", 0, 0, 0, "-1");
    cpu1("/pod", 100, 10, 5'000'000, "150000");
    machine.put("/sys/fs/cgroup/cpu,cpuacct/pod/job/cpuacct.usage", "1000000000\n");
    machine.put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1048576\n");
    machine.put("/sys/fs/cgroup/memory/job/memory.failcnt", "0\n");
    machine.put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    machine.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
    machine.put("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-2,8\n");
  }
  void cpu1(const std::string& group, long periods, long throttled, long time, const std::string& quota) const {
    const std::string folder = "/sys/fs/cgroup/cpu,cpuacct" + group;
    machine.put(folder + "/cpu.stat", "nr_periods " + std::to_string(periods) + "\nnr_throttled " +
                                          std::to_string(throttled) + "\nthrottled_time " + std::to_string(time) +
                                          "\n");
    machine.put(folder + "/cpu.cfs_quota_us", quota + "\n");
    machine.put(folder + "/cpu.cfs_period_us", "100000\n");
  }
  void version2(const std::string& stat) const {
    machine.put("/proc/self/mountinfo", kMounts2);
    machine.put("/proc/42/cgroup", "0::/a.slice/b.scope\n");
    machine.put("/sys/fs/cgroup/a.slice/b.scope/cpu.stat", stat);
    machine.put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "50000 100000\n");
    machine.put("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n");
    machine.put("/sys/fs/cgroup/a.slice/b.scope/memory.current", "4096\n");
    machine.put("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    machine.put("/sys/fs/cgroup/a.slice/memory.max", "8192\n");
    machine.put("/sys/fs/cgroup/a.slice/b.scope/memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n");
    machine.put("/sys/fs/cgroup/a.slice/b.scope/cpuset.cpus.effective", "1\n");
  }
};

TEST_F(Groups, Version1ThrottlingOfTheGroupAbove) {
  version1();
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  groups.refresh(kSecond, emitter);
  cpu1("/pod", 110, 15, 505'000'000, "150000");
  machine.put("/sys/fs/cgroup/cpu,cpuacct/pod/job/cpuacct.usage", "2500000000\n");
  machine.put("/sys/fs/cgroup/memory/job/memory.failcnt", "7\n");
  groups.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.periods", 42), 10);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.throttled_periods", 42), 5);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.throttled_time", 42), 5e8);
  EXPECT_EQ(samples.find("cgroup.cpu.throttled_time", 42)->unit, "ns/s");
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 1.5);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.used", 42), 1.5);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.used", 42), 1048576);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit", 42), 2097152);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit_hits", 42), 7);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpuset.cpus", 42), 4);
}

TEST_F(Groups, Version2) {
  version2("usage_usec 1000000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 1000\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  groups.refresh(kSecond, emitter);
  version2("usage_usec 1400000\nnr_periods 20\nnr_throttled 9\nthrottled_usec 601000\n");
  machine.put("/sys/fs/cgroup/a.slice/b.scope/memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n");
  groups.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.used", 42), 0.4);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.throttled_periods", 42), 8);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.throttled_time", 42), 6e8);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0.5);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit", 42), 8192);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit_hits", 42), 2);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.oom_kills", 42), 1);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpuset.cpus", 42), 1);
  std::vector<Sight> sights;
  groups.sights(sights);
  for (const Sight& sight : sights) EXPECT_TRUE(sight.available) << sight.what << ": " << sight.why;
}

TEST_F(Groups, TheLimitOfTheGroupAboveIsMetThere) {
  version2("usage_usec 1\n");
  const auto events = [&](const char* file, int hits, int kills) {
    machine.put(std::string("/sys/fs/cgroup/a.slice/") + file,
                "low 0\nhigh 0\nmax " + std::to_string(hits) + "\noom 0\noom_kill " + std::to_string(kills) + "\n");
  };
  events("memory.events.local", 100, 0);
  events("memory.events", 500, 0);
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  events("memory.events.local", 130, 0);
  events("memory.events", 900, 7);
  events("b.scope/memory.events", 3, 2);
  groups.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit_hits", 42), 30) << "not those of the groups below it";
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.oom_kills", 42), 2) << "not those of the groups beside it";
}

TEST_F(Groups, WithoutLocalEventsThoseOfGroupsAboveAreOfAnybody) {
  version2("usage_usec 1\n");
  machine.put("/sys/fs/cgroup/a.slice/memory.events", "max 100\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  machine.put("/sys/fs/cgroup/a.slice/memory.events", "max 130\n");
  machine.put("/sys/fs/cgroup/a.slice/b.scope/memory.events", "max 8\n");
  groups.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.limit_hits", 42), 5) << "its own";
}

TEST_F(Groups, MemoryHighAndWhatItCosts) {
  version2("usage_usec 1\n");
  const std::string folder = "/sys/fs/cgroup/a.slice/b.scope";
  machine.put(folder + "/memory.high", "2048\n");
  machine.put(folder + "/cgroup.events", "populated 1\n");
  machine.put(folder + "/memory.stat", "anon 5\nworkingset_refault_anon 10\nworkingset_refault_file 100\n");
  machine.put(folder + "/memory.pressure",
              "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  machine.put(folder + "/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  groups.refresh(kSecond, emitter);
  machine.put(folder + "/memory.events", "low 0\nhigh 40\nmax 3\noom 0\noom_kill 0\n");
  machine.put(folder + "/memory.stat", "anon 5\nworkingset_refault_anon 30\nworkingset_refault_file 180\n");
  machine.put(folder + "/memory.pressure", "some avg10=0.00 total=500000\nfull avg10=0.00 total=250000\n");
  machine.put(folder + "/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100000\n");
  groups.sample(2 * kSecond, emitter);
  groups.refresh(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.high", 42), 2048);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.high_hits", 42), 40);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.refaults", 42), 100);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.pressure.memory.some", 42), 0.5);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.pressure.memory.full", 42), 0.25);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.pressure.io.some", 42), 0.1);
  EXPECT_EQ(samples.find("cgroup.pressure.cpu.some", 42), nullptr);
  machine.put(folder + "/memory.high", "max\n");
  groups.refresh(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.high", 42), 0) << "it has gone";
}

TEST_F(Groups, Version1CountsRefaultsOfTheGroupsBelow) {
  version1();
  const auto stat = [&](int own, int total) {
    machine.put("/sys/fs/cgroup/memory/job/memory.stat",
                "workingset_refault_file " + std::to_string(own) + "\ntotal_workingset_refault_anon 5\n" +
                    "total_workingset_refault_file " + std::to_string(total) + "\n");
  };
  stat(1, 10);
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.refresh(kSecond, emitter);
  stat(3, 60);
  groups.refresh(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.memory.refaults", 42), 50);
  EXPECT_EQ(samples.find("cgroup.memory.high_hits", 42), nullptr);
}

TEST_F(Groups, ThePressureOfTheRootIsThatOfTheMachine) {
  version1();
  machine.put("/sys/fs/cgroup/unified/memory.pressure", "some avg10=0.00 total=0\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.refresh(kSecond, emitter);
  machine.put("/sys/fs/cgroup/unified/memory.pressure", "some avg10=0.00 total=500000\n");
  groups.refresh(2 * kSecond, emitter);
  EXPECT_EQ(samples.find("cgroup.pressure.memory.some", 42), nullptr);
}

TEST_F(Groups, AQuotaThatAppearsAndGoes) {
  version1();
  cpu1("/pod", 0, 0, 0, "-1");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.refresh(kSecond, emitter);
  EXPECT_EQ(samples.find("cgroup.cpu.quota", 42), nullptr);
  cpu1("/pod/job", 0, 0, 0, "20000");
  groups.refresh(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0.2);
  cpu1("/pod/job", 0, 0, 0, "-1");
  groups.refresh(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0);
}

TEST_F(Groups, ATargetThatIsMovedIsFollowed) {
  version1();
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  machine.put("/proc/42/cgroup", "1:cpu,cpuacct:/jail\n");
  cpu1("/jail", 0, 0, 0, "10000");
  groups.place(42);
  groups.sample(2 * kSecond, emitter);
  groups.refresh(2 * kSecond, emitter);
  cpu1("/jail", 10, 10, 900'000'000, "10000");
  groups.sample(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.throttled_time", 42), 9e8);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0.1);
}

TEST_F(Groups, ATargetThatLeavesAGroupWithAQuotaHasNone) {
  version1();
  cpu1("/pod", 0, 0, 0, "-1");
  cpu1("/jail", 0, 0, 0, "10000");
  machine.put("/proc/42/cgroup", "1:cpu,cpuacct:/jail\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.refresh(kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0.1);
  machine.put("/proc/42/cgroup", "1:cpu,cpuacct:/pod/job\n");
  groups.place(42);
  groups.refresh(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("cgroup.cpu.quota", 42), 0);
}

TEST_F(Groups, ProcessesOfOneGroupShareItsTracks) {
  version1();
  machine.put("/proc/43/cgroup", "4:memory:/job\n3:cpuset:/\n1:cpu,cpuacct:/pod/job\n0::/\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.place(43);
  groups.sample(kSecond, emitter);
  groups.forget(42);
  groups.sample(2 * kSecond, emitter);
  EXPECT_NE(samples.find("cgroup.cpu.periods", 42), nullptr);
  EXPECT_EQ(samples.find("cgroup.cpu.periods", 43), nullptr);
  groups.forget(43);
  const auto before = emitter.written();
  groups.sample(3 * kSecond, emitter);
  EXPECT_EQ(emitter.written(), before);
}

TEST_F(Groups, AGroupOutsideOfWhatIsMountedIsASight) {
  machine.put("/proc/self/mountinfo", kMounts2);
  machine.put("/proc/42/cgroup", "0::/../../other\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.sample(kSecond, emitter);
  groups.refresh(kSecond, emitter);
  std::vector<Sight> sights;
  groups.sights(sights);
  ASSERT_EQ(sights.size(), 2u);
  EXPECT_FALSE(sights[0].available);
  EXPECT_THAT(sights[0].why, testing::HasSubstr("cannot be seen from here"));
}

TEST_F(Groups, MissingAndDamagedFilesDoNoHarm) {
  GroupSampler nothing(machine.root());
  nothing.place(42);
  nothing.sample(kSecond, emitter);
  std::vector<Sight> sights;
  nothing.sights(sights);
  EXPECT_FALSE(sights[0].available);
  version1();
  machine.put("/proc/42/cgroup", "::::\n1:cpu,cpuacct\n99\n1:cpu,cpuacct:no/slash\n4:memory:/job/../..\n");
  GroupSampler groups(machine.root());
  groups.place(42);
  groups.place(999);
  groups.sample(kSecond, emitter);
  groups.refresh(kSecond, emitter);
  EXPECT_TRUE(samples.series.empty());
}

TEST(Cgroups, AMountOfAPartOfTheHierarchyIsTakenOff) {
  const auto mounts =
      parse_cgroup_mounts("1 2 0:1 /docker/abc /sys/fs/cgroup ro shared:1 master:2 - cgroup2 cgroup rw\n");
  ASSERT_EQ(mounts.size(), 1u);
  const auto inside = find_cgroups("0::/docker/abc/worker\n", mounts);
  EXPECT_EQ(inside.cpu, (std::vector<std::string>{"/sys/fs/cgroup/worker", "/sys/fs/cgroup"}));
  EXPECT_TRUE(inside.cpu_v2);
  EXPECT_TRUE(find_cgroups("0::/docker/abcdef\n", mounts).cpu.empty());
  EXPECT_TRUE(find_cgroups("0::/docker/other\n", mounts).cpu.empty());
}

TEST(Cgroups, MountPointsWithSpacesAreRead) {
  const auto mounts = parse_cgroup_mounts("1 2 0:1 / /a\\040b rw - cgroup2 none rw\nshort\n\n");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(mounts[0].folder, "/a b");
}

TEST(CpuList, CountsAndRefuses) {
  EXPECT_EQ(count_cpu_list("0-3,8\n"), 5u);
  EXPECT_EQ(count_cpu_list(""), 0u);
  EXPECT_EQ(count_cpu_list("7"), 1u);
  for (const char* bad : {"a", "3-1", "0-", "-1", "1,,2", "0-99999999999"}) EXPECT_FALSE(count_cpu_list(bad)) << bad;
}

}  // namespace
}  // namespace culprit::record
