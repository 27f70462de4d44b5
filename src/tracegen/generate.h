// Runs a simulation and writes its traces, one file per rank, and the truth about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "tracegen/options.h"

namespace culprit::tracegen {

struct Generated {
  std::vector<std::string> traces;  ///< paths, in rank order
  std::string truth;                ///< path; empty when none was written
  std::uint64_t steps = 0;
  std::uint64_t slices = 0;      ///< over all ranks, as written
  std::uint64_t text_bytes = 0;  ///< of the traces, before compression
};

/// Simulates and writes. Errors: usage (options that do not fit together) and input (a path that cannot be written).
///
/// The truth is one JSON object: "options"; "steps", one object per step and rank with times in ns on the rank's clock
/// relative to the base ("begin_ns", "period_ns" to the next step of the rank, device window, time in the run queue,
/// blocked and waiting for input, phase, batch, tokens, "disturbed"); and "ranks" with what was written: counts and
/// sums by category and by function, flows, counters, lost slices, bytes.
Result<Generated> generate(const Options& options);

}  // namespace culprit::tracegen
