// Memory of the host: what is left, what is dirty, swapping, faults, reclaim, NUMA misses; and pressure stall times.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Samples memory and pressure.
class MemorySampler {
 public:
  /// `page_bytes` is the size of a page of this machine.
  MemorySampler(const std::string& root, std::uint64_t page_bytes);

  void sample(Ns now, Emitter& emitter);
  /// Counters of each NUMA node.
  void sample_nodes(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Pressure {
    std::string resource;
    KernelFile file;
    RateTrack some;
    RateTrack full;
    bool readable = false;
  };
  struct Node {
    KernelFile file;
    std::array<RateTrack, 3> tracks;
  };
  void sample_meminfo(Ns now, Emitter& emitter);
  void sample_vmstat(Ns now, Emitter& emitter);

  KernelFile meminfo_;
  KernelFile vmstat_;
  std::vector<char> buffer_;
  std::vector<Pressure> pressures_;
  std::vector<Node> nodes_;
  Track available_, cached_, dirty_, writeback_, swap_used_;
  RateTrack swap_in_, swap_out_, minor_, major_, direct_scans_, stalls_, numa_misses_, numa_moves_, oom_kills_;
};

/// One line of a pressure file ("some avg10=… total=123"): its total in microseconds. nullopt: no such line.
std::optional<std::uint64_t> pressure_total(std::string_view text, std::string_view kind);

}  // namespace culprit::record
