// Where the cycles begin, as each of the three methods states it; assemble.h makes cycles of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cycles/find.h"
#include "model/cycles.h"
#include "trace/trace.h"

namespace culprit::cycles {

/// One begin of a cycle.
struct Cut {
  Ns begin = 0;
  Ns end = 0;                ///< of what begins the cycle (marker, function); the begin again when it has no length
  StringId name = 0;         ///< of the marker or function
  std::int64_t number = -1;  ///< iteration number in the marker's name
};

/// What one process, or one rank with a single process that counts, does one cycle after the other.
struct Lane {
  std::uint16_t rank = 0;
  ProcessId process = kNone;
  TrackId track = kNone;  ///< thread of the anchor
  std::vector<Cut> cuts;  ///< ascending
};

struct Cutting {
  model::CycleMethod method = model::CycleMethod::none;
  std::string anchor;
  bool given = false;  ///< the anchor was named by the user
  double period_confidence = 0;
  double phase_confidence = 0;
  std::string reason;
  std::vector<std::string> notes;
  std::vector<Lane> lanes;        ///< by (rank, process)
  bool device_time = false;       ///< cuts are begins of GPU operations: there is no host side
  bool at_end = false;            ///< the marker stands at the end of a step
  bool from_end_to_end = false;   ///< a loop that nobody asks for its steps: nothing in a cycle is a wait for requests
  std::size_t updates_every = 0;  ///< cycles, when the weights are not updated in each: gradients are accumulated

  /// Most cycles in one lane.
  [[nodiscard]] std::size_t most() const {
    std::size_t n = 0;
    for (const Lane& lane : lanes) n = n < lane.cuts.size() ? lane.cuts.size() : n;
    return n;
  }
};

/// Begins of what the host does for the workload, ascending, by row of Trace::ranks: of the calls that launched GPU
/// work, or of the outermost operators where there is no GPU work. Empty ranks have none.
struct HostWork {
  std::vector<std::vector<Ns>> begins;
  bool operators = false;
  [[nodiscard]] std::uint64_t all() const;
};
HostWork host_work(const Trace& trace, const SliceOrder& order);

/// Method 1: the family of markers that delimits steps; with `anchor` the slices of that name whatever they are.
std::optional<Cutting> cut_by_marker(const Trace& trace, const SliceOrder& order, const HostWork& work);
/// Slices called `anchor`, or, where no two are, those whose names are the same but for their numbers; 'N' or '#' in
/// `anchor` may stand for a number, as in what reports show. nullopt when it names nothing.
std::optional<Cutting> cut_by_name(const Trace& trace, const SliceOrder& order, const std::string& anchor);

/// Method 2: the outermost repeated function of the thread that does most of the work.
std::optional<Cutting> cut_by_function(const Trace& trace, const SliceOrder& order, const HostWork& work);

/// Method 3: the repeating sequence of GPU operations, or of operators of the host where there is no GPU work.
std::optional<Cutting> cut_by_sequence(const Trace& trace, const SliceOrder& order);

/// Says in the notes where the rest of the work is when the ranges of the anchor hold less than most of it.
void note_work_outside(const HostWork& work, Cutting& cutting);

/// Looks for numbered parts of a model (`blocks.7`, `DecoderLayer_7`) on the threads of the anchors. When every cycle
/// is one of them, `cutting` is a list of parts: its confidence drops below one half and the reason says why; where the
/// numbers start again at least twice, the steps between are given instead.
Cutting doubt_parts(const Trace& trace, const SliceOrder& order, Cutting cutting);

}  // namespace culprit::cycles
