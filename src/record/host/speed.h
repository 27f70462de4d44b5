// How fast the machine is: fixed pieces of work, timed a few times a second. Where a virtual machine shows neither
// clocks nor hardware counters this is what tells a machine that became slower from a program that did. It explains,
// and corrects nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "record/collector/collector.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Three pieces of work, of some microseconds each: a chain of multiplications (clock), a walk from cache line to cache
/// line through 256 KiB (caches that others use, too), and a small interpreter whose next operation depends on data
/// (branches, as in Python). The CPUs of a machine need not be alike, so the last one, which tells most, is told for
/// the CPU on which it ran as well.
class SpeedProbes {
 public:
  SpeedProbes();

  /// Runs each once, at the pace of kEvery; true when it did. A run in which the thread was off its CPU is counted and
  /// not written.
  bool sample(Ns now, Emitter& emitter);
  static void sights(std::vector<Sight>& out);
  [[nodiscard]] std::uint64_t preempted() const { return preempted_; }

  static constexpr Ns kEvery = 250'000'000;

 private:
  std::uint64_t multiply();
  std::uint64_t walk();
  std::uint64_t interpret();

  std::vector<std::uint32_t> next_;        ///< one ring through all cache lines, in random order
  std::array<std::uint8_t, 1024> code_{};  ///< of the interpreter
  Track arithmetic_{"host.speed.arithmetic", "ns"};
  Track memory_{"host.speed.memory", "ns"};
  Track branches_{"host.speed.branches", "ns"};
  std::map<int, Track> branches_of_;  ///< by CPU
  std::uint32_t at_ = 0;              ///< of the walk
  std::uint64_t seed_ = 1;            ///< what the work gives; keeps it from being left out
  std::uint64_t preempted_ = 0;
  Ns due_ = 0;
};

}  // namespace culprit::record
