// Cycle counter values of recorded threads as CLOCK_MONOTONIC. Reading the counter costs the program half of what the
// clock costs; the recorder, on the same machine, looks at both now and then and interpolates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/units.h"

namespace culprit::record::nvtx {

/// The counter and the clock at one moment.
struct ClockPoint {
  std::uint64_t counter = 0;
  Ns at = 0;
};

/// The CPU's cycle counter; 0 where there is none that programs can read.
std::uint64_t read_counter();

/// Both clocks, read together; `uncertainty`, if given, gets the half of the time that reading took.
ClockPoint clock_point(Ns* uncertainty = nullptr);

/// Interpolates between points, which come in the order of time; beyond them it goes on as between the nearest two.
class CounterClock {
 public:
  void add(const ClockPoint& point);
  /// False until two points are known that tell the counter's pace.
  [[nodiscard]] bool ready() const { return points_.size() >= 2; }
  /// CLOCK_MONOTONIC at a counter value; clamped to the range of Ns. Only when ready().
  [[nodiscard]] Ns at(std::uint64_t counter) const;

 private:
  static constexpr std::size_t kMostPoints = 256;
  std::deque<ClockPoint> points_;
};

}  // namespace culprit::record::nvtx
