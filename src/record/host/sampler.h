// All counters of the host at one pace: cheap ones in every sample, costly ones in turns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/host/cpu.h"
#include "record/host/devices.h"
#include "record/host/groups.h"
#include "record/host/memory.h"
#include "record/host/processes.h"
#include "record/host/speed.h"
#include "record/host/tcp.h"
#include "record/host/tracks.h"

namespace culprit::record {

struct HostOptions {
  std::string root;                    ///< of /proc and /sys; empty on the real machine
  std::int64_t own_pid = 0;            ///< the recorder
  Ns interval = 100'000'000;           ///< between two samples
  Ns others_interval = 1'000'000'000;  ///< between two looks at all processes, longer where one takes long
};

/// Holds every sampler. Not thread-safe.
class HostSampler {
 public:
  HostSampler(const HostOptions& options, CounterOut out);

  void join(const Target& target);
  void leave(std::int64_t pid);
  /// Samples when the time has come; true when it did.
  bool poll(Ns now);
  /// The last look: also at what is looked at once a second, so that a short recording knows it.
  void finish(Ns now);
  /// What comes goes into a file that begins at `now`.
  void begin_file(Ns now) { emitter_.begin_at(now); }
  [[nodiscard]] std::vector<Sight> sights() const;

  /// Speed probes during which the recorder was off its CPU.
  [[nodiscard]] std::uint64_t speed_preempted() const { return speed_.preempted(); }
  /// Samples taken, and the CPU time that they took in this thread.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] Ns cpu_ns() const { return cpu_ns_; }
  [[nodiscard]] const Emitter& emitter() const { return emitter_; }

 private:
  void sample(Ns now);
  void sample_in_turns(Ns now);
  void sample_others(Ns now);

  HostOptions options_;
  Emitter emitter_;
  CpuSampler cpu_;
  MemorySampler memory_;
  DiskSampler disks_;
  NetworkSampler networks_;
  TcpSampler connections_;
  SensorSampler sensors_;
  GroupSampler groups_;
  ProcessSampler processes_;
  SpeedProbes speed_;
  std::vector<std::int64_t> pids_;
  std::size_t next_pid_ = 0;
  Track others_;
  Ns due_ = 0;
  Ns others_due_ = 0;
  Ns others_early_ = 0;  ///< where others use much that is not named
  Ns others_at_ = 0;
  double named_ = 0;       ///< CPUs' worth of time that the last look found processes for
  double unnamed_ns_ = 0;  ///< CPU time of others since, beyond that
  std::uint64_t samples_ = 0;
  Ns cpu_ns_ = 0;
};

}  // namespace culprit::record
