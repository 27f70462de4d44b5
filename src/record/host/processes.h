// What the targets themselves use, and which other processes take the CPUs from them.
//
// CPU time of a process comes from its CPU-time clock: nanoseconds, threads that have ended included. The ticks
// of /proc/PID/stat are taken where that clock is not to be had, and for the split into user and system.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Of /proc/PID/stat. Times in clock ticks.
struct ProcessStat {
  std::string_view name;  ///< the kernel's 15 characters, as they are
  char state = '?';
  std::int64_t parent = 0;
  std::uint64_t minor_faults = 0, major_faults = 0;
  std::uint64_t user = 0, system = 0;
  std::uint64_t children = 0;  ///< user and system time of children that have ended and were waited for
  std::uint64_t threads = 0;
  std::uint64_t start = 0;
  std::uint64_t resident_pages = 0;
};
/// nullopt: damaged. The name may contain anything, spaces and brackets too.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

struct ProcessOptions {
  std::string root;          ///< clocks are used only when it is empty: they know nothing of another root
  std::int64_t own_pid = 0;  ///< the recorder
  std::uint64_t page_bytes = 4096;
  std::uint64_t ticks_per_second = 100;
  double other_least = 0.05;  ///< share of one CPU from which on another process is shown
  std::size_t other_most = 8;
  std::size_t stats_per_sample = 16;  ///< of so many targets the details are read per sample, in turns
};

/// Samples targets and others.
class ProcessSampler {
 public:
  explicit ProcessSampler(ProcessOptions options);

  void join(const Target& target);
  void leave(std::int64_t pid);
  /// All targets' CPU time; returns how many CPUs they kept busy since the last sample.
  std::optional<double> sample(Ns now, Emitter& emitter);
  /// Looks at all processes of the machine; returns how many CPUs those that it shows kept busy. Costs about a
  /// microsecond for each.
  double sample_others(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;
  /// Cores that the recorder itself kept busy since its last sample; part of sample().
  [[nodiscard]] double recorder() const { return recorder_cores_; }

 private:
  struct Process {
    std::int64_t pid = 0;
    std::int64_t parent = 0;
    KernelFile stat;
    std::optional<std::uint64_t> cpu_ns;
    std::uint64_t children_ns = 0;
    bool children_known = false;
    Growing cpu;
    Track cpu_track, resident, threads;
    RateTrack user, system, minor, major;
  };
  struct Other {
    std::uint64_t cpu_ns = 0;
    std::uint64_t round = 0;
    bool shown = false;
    Track track;
  };
  std::optional<std::uint64_t> cpu_time(std::int64_t pid);
  void take_stat(Process& process, Ns now, Emitter& emitter);

  ProcessOptions options_;
  std::vector<char> buffer_;
  std::map<std::int64_t, Process> targets_;
  std::map<std::int64_t, Other> others_;
  std::uint64_t round_ = 0;
  Ns others_at_ = 0;
  Ns sampled_at_ = 0;
  std::uint64_t pending_ns_ = 0;                       ///< found since the last sample beside the clocks
  std::map<std::int64_t, std::uint64_t> departed_ns_;  ///< counted for targets that left; this parent reports it again
  std::size_t next_ = 0;
  Track total_;
  Track recorder_track_;
  Growing recorder_;
  double recorder_cores_ = 0;
  std::uint64_t minor_sum_ = 0, major_sum_ = 0;
  RateTrack minor_, major_;
  std::size_t unreadable_ = 0;
};

}  // namespace culprit::record
