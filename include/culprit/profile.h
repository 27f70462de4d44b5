// What every function took in every cycle, and how the resources behaved meanwhile.
#pragma once

#include <culprit/api.h>
#include <culprit/cycles.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/table.h>

namespace culprit {

/// Tables as `culprit profile` writes them, see docs/profile.md. Their notes say how cycles were found, and what is
/// missing.
struct Profile {
  Table cycles;
  Table functions;  ///< one row per cycle, process, function and device
  Table resources;  ///< one row per row of `functions` and resource
  Table counters;   ///< one row per sample
  /// Where every nanosecond went: cycle, rank, phase, pid, device (none: the thread that runs the cycles), window_ns,
  /// state, function, count, time_ns. The rows of a cycle, rank, process and device sum to its window: on the host the
  /// period of the cycle, on a device from the first operation that the cycle launched to the first of the next one.
  /// Cycles whose period is not known have none.
  Table ledger;
};

/// Errors: as find_cycles(); input, when the run has no cycles.
CULPRIT_API Result<Profile> profile_run(const Run& run, const CycleOptions& options = {});

}  // namespace culprit
