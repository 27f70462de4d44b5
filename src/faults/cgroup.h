// The CPU quota of a group of processes, for both versions of cgroups. With version 1 the target moves into a child of
// its own group, whose limits stay in force above it. Version 2 allows no processes beside children, so a group that
// holds nothing but the target gets the quota itself, and else the target moves into a sibling of its group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "faults/process.h"
#include "faults/undo.h"

namespace culprit::faults {

/// Where the kernel shows cgroups; tests name a tree of their own.
struct CgroupRoots {
  std::string proc = "/proc";
  std::string mounts = "/proc/self/mounts";
};

struct CpuCgroup {
  bool version2 = false;
  std::string mount;  ///< where the hierarchy with the CPU controller is mounted
  std::string path;   ///< the group below it, "/" for the root

  [[nodiscard]] std::string folder() const { return path == "/" ? mount : mount + path; }
};

/// The group of a process in the hierarchy that limits CPU. Error: no CPU controller is mounted, or the process is
/// gone.
Result<CpuCgroup> cpu_cgroup_of(pid_t pid, const CgroupRoots& roots = {});

/// How a quota is to be set: what is created and written, and what undoes it.
struct QuotaPlan {
  CpuCgroup origin;
  std::string group;       ///< the group that gets the quota
  bool own = true;         ///< created for this, the target's processes move there
  std::string quota_file;  ///< gets `quota_text`
  std::string quota_text;
  std::string period_file;  ///< version 1: gets the period first; else empty
  std::string shares_text;  ///< version 1: the weight of as many processes as the target has threads; else empty
  std::vector<Undo> undo;   ///< in the order in which the changes are made
};

/// CPUs' worth of time that the group allows: its tightest quota upwards, at most `cpus`.
double cpu_limit_of(const CpuCgroup& group, double cpus);

/// Plans a quota of `cpus_left` CPUs per 100 ms for these processes; `name` becomes the name of the own group.
/// Error: the processes are in several groups (one quota cannot hold them), or moving them would lift another limit.
Result<QuotaPlan> plan_quota(const std::vector<ProcessId>& processes, double cpus_left, const std::string& name,
                             const CgroupRoots& roots = {});

/// Creates the group and sets the quota, without moving anything.
Status apply_quota(const QuotaPlan& plan);
/// Moves those of the target's tree that are not in the group yet; gives how many it moved.
Result<std::size_t> move_tree(const QuotaPlan& plan, ProcessId root);

/// Moves everything in `own` to `origin`, also what was forked since, and removes `own`; waits up to two seconds for
/// processes on their way out. Gives what went wrong; a group that is not there is done.
std::optional<std::string> leave_cgroup(const std::string& own, const std::string& origin);

struct ThrottleCount {
  std::int64_t periods = 0;
  std::int64_t throttled_periods = 0;
  std::int64_t throttled_ns = 0;
};
/// cpu.stat of the group; zeros where it does not tell.
ThrottleCount throttle_count(const QuotaPlan& plan);

}  // namespace culprit::faults
