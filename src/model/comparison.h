// What comparing two runs found. `compare` fills it, `report` shows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/cycles.h"
#include "model/host_evidence.h"
#include "model/profile.h"

namespace culprit::model {

/// What became of the cycle time.
enum class Outcome : std::uint8_t { inconclusive, regression, improvement, no_change };

/// Cycle times of one phase, and what follows from them. Changes are relative: 0.1 is 10 % longer.
struct CycleTimeOutcome {
  Phase phase = Phase::other;
  Outcome outcome = Outcome::inconclusive;
  double change = kNoNumber;  ///< of the geometric mean
  double low = kNoNumber;     ///< 95 % interval; none with too few cycles
  double high = kNoNumber;
  double smallest_seen = kNoNumber;  ///< smallest regression that these cycles could have shown
  double tolerance = 0;
  double between = 0;  ///< assumed spread between recordings of the same
  std::array<std::size_t, 2> cycles{};
  std::array<double, 2> effective{};  ///< number of independent cycles
};

}  // namespace culprit::model
