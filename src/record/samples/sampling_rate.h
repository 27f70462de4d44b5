// How often stacks are taken, so that what this takes stays below a share of one CPU. The clocks of the CPUs ask as
// often as was wished; a stack is taken at one of so many asks, and stands for all of them (bpf/culprit.bpf.c).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/units.h"

namespace culprit::record::samples {

inline constexpr double kMostShare = 0.02;        ///< of one CPU, for the stacks of all CPUs together
inline constexpr unsigned kLowestHz = 10;         ///< of each CPU, whatever it takes
inline constexpr Ns kRoundLasts = 1'000'000'000;  ///< what stacks take is looked at so often
inline constexpr std::size_t kRounds = 3;         ///< of which the median counts: code is costly when it is met first

/// What taking stacks took for a while.
struct Round {
  Ns cpu = 0;          ///< of the recorder, and of its programs in the kernel where that is known
  Ns wall = 0;         ///< how long it lasted, above 0
  unsigned every = 1;  ///< asks for one stack
};

/// Asks for one stack from now on: 1 at the rate `hz` that was wished. `rounds` are the last ones, the present one at
/// the end; before there are kRounds nothing changes. It becomes rarer at once, and at most twice as often in a round,
/// when a fifth of kMostShare would be left.
unsigned next_every(std::span<const Round> rounds, unsigned hz);

/// Of each CPU, up to now.
struct RatesUsed {
  double mean_hz = 0;    ///< over the time
  double lowest_hz = 0;  ///< in any round
};

/// The rate of one recording.
class SamplingRate {
 public:
  explicit SamplingRate(unsigned hz) : hz_(hz) {}
  /// A round ended, in which stacks took `cpu` (as Round). One that did not last is none.
  void round_ended(Ns cpu, Ns wall);
  /// Asks for one stack in the round that goes on.
  [[nodiscard]] unsigned every() const { return every_; }
  [[nodiscard]] RatesUsed used() const;

 private:
  unsigned hz_;
  unsigned every_ = 1;
  unsigned rarest_ = 1;
  double wall_ = 0;   ///< of all rounds, ns
  double share_ = 0;  ///< the sum of their wall / every
  std::vector<Round> last_;
};

}  // namespace culprit::record::samples
