// The control groups that the targets are in: how much CPU and memory they may use, how much they do use, and
// how long they were held back.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "record/collector/cgroups.h"
#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Samples the groups of the targets. A target that moves to another group, and a quota that appears higher up, are
/// found within a second.
class GroupSampler {
 public:
  explicit GroupSampler(const std::string& root);

  /// Looks where `pid` is now.
  void place(std::int64_t pid);
  void forget(std::int64_t pid);
  void sample(Ns now, Emitter& emitter);
  /// Limits, the folders that throttle, refaults and pressure of one of the groups; each call takes the next.
  void refresh(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Pressure {
    KernelFile file;
    RateTrack some, full;
  };
  struct Group {
    std::int64_t pid = 0;
    CgroupFolders folders;
    std::set<std::int64_t> members;
    std::string throttle_folder, limit_file;
    KernelFile cpu_stat, usage, memory, memory_events, memory_kills, memory_stat;
    RateTrack used, periods, throttled_periods, throttled_time, limit_hits, high_hits, oom_kills, refaults;
    Track quota, memory_used, memory_limit, memory_high, cpuset;
    std::array<Pressure, 3> pressures;
    bool had_quota = false;
    bool had_limit = false;
    bool had_high = false;
  };
  void open_group(Group& group, std::int64_t pid);
  void leave_group(std::int64_t pid, const std::string& text);
  void open_pressure(Group& group, const std::string& cgroup_text);
  void find_throttle(Group& group);
  static void find_limit(Group& group);
  void sample_memory_in_turns(Group& group, Ns now, Emitter& emitter);

  std::string root_;
  std::vector<CgroupMount> mounts_;
  std::map<std::string, Group> groups_;  ///< by the text of /proc/PID/cgroup
  struct Place {
    KernelFile file;  ///< /proc/PID/cgroup
    std::string text;
  };
  std::map<std::int64_t, Place> place_of_;
  std::vector<char> buffer_;
  std::size_t next_ = 0;
  std::string trouble_;
};

}  // namespace culprit::record
