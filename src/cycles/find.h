// Finds the cycles (steps, iterations) of a run: by markers, by repeated host functions, or by the repeating sequence
// of GPU operations; and says which slice belongs to which cycle.
#pragma once

#include <culprit/task.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "model/cycles.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::cycles {

struct FindOptions {
  /// Name of a marker or function that begins every cycle; names that differ from it only in digits count too. Empty:
  /// found automatically.
  std::string anchor;
  std::optional<model::Phase> phase;   ///< keep only cycles of this phase
  unsigned skip = 0;                   ///< leave out so many first cycles of every rank (numbers stay as they are)
  bool ignore_markers = false;         ///< do not use annotations of any kind
  bool ignore_host_functions = false;  ///< do not use Python functions and operators
  bool work_units = true;              ///< where nothing else is found, units of work are cycles
  Task task{};                         ///< is asked between passes over the trace
};

/// Cycles and the cycle of every slice.
struct Found {
  model::Cycles cycles;
  /// By row of Trace::slices: row of `cycles.cycles`, or kNone for what lies in none. A host slice belongs to the cycle
  /// of its rank in whose host window it begins; GPU work to the cycle of its launcher; GPU work without a known
  /// launcher to the device window in which it begins.
  std::vector<std::uint32_t> cycle_of_slice;
  std::optional<model::WorkUnits> work;  ///< where nothing but them was found, whether or not they make cycles
  std::uint64_t placed_by_time = 0;      ///< GPU slices without a known launcher that were placed by time
};

/// Finds cycles. Never fails for what a trace holds: without repetition the method is none and the reason says why.
/// Errors: usage, when `options.anchor` names nothing that occurs in the trace, or there are cycles and none of them is
/// of `options.phase` and behind `options.skip`; cancelled. Time linear in slices apart from
/// sorting candidates; about 8 bytes per slice while it runs.
Result<Found> find_cycles(const Trace& trace, const SliceOrder& order, const FindOptions& options);

}  // namespace culprit::cycles
