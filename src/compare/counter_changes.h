// Counters of the host on both sides, window by window: which of them moved.
#pragma once

#include <span>
#include <vector>

#include "model/host_evidence.h"
#include "model/recording.h"

namespace culprit::compare {

/// What the windows of both sides tell of their counters.
struct CounterChanges {
  /// Counters that only one side has, or limits of groups that only one side feels, then those that moved by more than
  /// their windows spread, most certain first.
  std::vector<model::HostChange> moved;
  /// For rules, which ask for more than one sign: clocks of CPUs, and what fixed work of the recorder took, that differ
  /// by a twentieth or more and surely do in their windows; connections; what groups use of their memory and may.
  std::vector<model::HostChange> unshown;
};
CounterChanges counter_changes(std::span<const model::Recording> base, std::span<const model::Recording> candidate);

}  // namespace culprit::compare
