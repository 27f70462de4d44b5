// Where the control groups of a process lie. Quotas and limits count down the whole tree, so a container that has none
// itself may still be held by its pod: limits are looked for up to the root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record {

/// A mounted hierarchy.
struct CgroupMount {
  std::string folder;  ///< with the root of the file system in front
  std::string inside;  ///< which group of the hierarchy stands at `folder`; "/" for all
  bool v2 = false;
  std::vector<std::string> controllers;  ///< of version 1: "cpu", "memory", "name=systemd"
};

/// The folders of one process, from its own group up to the mount; empty when the hierarchy cannot be seen from here.
struct CgroupFolders {
  std::vector<std::string> cpu;      ///< cpu.max and cpu.stat, or cpu.cfs_quota_us
  std::vector<std::string> cpuacct;  ///< version 1 only
  std::vector<std::string> memory;
  std::vector<std::string> cpuset;
  bool cpu_v2 = false;
  bool memory_v2 = false;
  bool cpuset_v2 = false;
};

/// From the text of /proc/PID/mountinfo.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& root = {});
/// From the text of /proc/PID/cgroup. A controller that version 2 has as well as version 1 is taken from where it has
/// files.
CgroupFolders find_cgroups(std::string_view cgroup_text, const std::vector<CgroupMount>& mounts);

/// CPUs' worth of time that a group may use: quota / period. nullopt: no quota.
std::optional<double> cpu_quota(const std::string& folder, bool v2);
/// The folder with the smallest quota on the way up, and that quota.
struct TightestQuota {
  std::string folder;
  double cores = 0;
};
std::optional<TightestQuota> tightest_cpu_quota(const std::vector<std::string>& folders, bool v2);
/// The smallest memory limit on the way up, bytes. nullopt: none.
std::optional<std::uint64_t> tightest_memory_limit(const std::vector<std::string>& folders, bool v2);

}  // namespace culprit::record
