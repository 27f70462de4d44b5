// Cycles while they are put together: one row per lane and cut, before numbers and order over ranks are known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cycles/cutting.h"
#include "model/cycles.h"

namespace culprit::cycles {

struct DraftLane {
  const Lane* lane = nullptr;
  std::uint32_t first = 0;  ///< row of the first cycle
  std::vector<Ns> end;      ///< of each host window
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(end.size()); }
};

struct Draft {
  std::vector<DraftLane> lanes;
  std::vector<model::Cycle> cycles;           ///< by (lane, begin)
  std::vector<std::uint32_t> cycle_of_slice;  ///< row of `cycles`, or kNone
  std::vector<std::uint64_t> operations;      ///< GPU slices per cycle
  std::vector<std::uint64_t> host_slices;     ///< per cycle
  std::uint64_t placed_by_time = 0;
};

/// End of a recording at which the thread of the steps stands still: most of the time since the last step began it
/// waited for a CPU, that is more than twice as long as any step took, and on a CPU it was for less than that. nullopt:
/// it does not, or nobody knows.
std::optional<Ns> stands_still_until(const Trace& trace, const SliceOrder& order, const Lane& lane);

/// Sets phase and workload of every cycle: from the marker's text, other annotations in the cycle, names of host
/// functions, names of kernels, in this order.
void find_phases(const Trace& trace, const Cutting& cutting, Draft& draft);

/// Sets `partial` and `warm_up`.
void mark_edges(Draft& draft);

/// Sets `partial` of cycles at whose end numbers of markers are skipped: markers were lost, and they are several steps.
/// How many.
std::size_t mark_skipped(Draft& draft);

/// Sets the part of each period in which neither the anchor's thread nor a device of the rank had work.
void find_idle_host(const Trace& trace, const SliceOrder& order, const Cutting& cutting, Draft& draft);

/// Gives the same number to the same step of all lanes: by the numbers in the markers' names, else by the collectives
/// that the ranks share, else by order. Notes say what was assumed.
void number_cycles(const Trace& trace, Draft& draft, std::vector<std::string>& notes);

}  // namespace culprit::cycles
