// Cycles as the reference tool cuts them, and which slices belong to each. Only its own tables (`--compat deepdive`)
// are made with these: a cycle here runs from the end of the anchor before to the end of its own anchor, and everything
// that lies across a border is cut there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "model/cycles.h"
#include "trace/trace.h"

namespace culprit::deepdive {

struct ReferenceOptions {
  std::string anchor;  ///< name that delimits cycles; empty: chosen by the reference's rule
  bool align = false;  ///< put the anchors of all processes that belong to one step together; else the process with the
                       ///< smallest id sets the borders for all
  bool only_python_nests = false;  ///< system calls, scheduling and API calls belong to a cycle by time alone; the
                                   ///< reference does that where several processes interleave
  std::string_view otherwise = "leave out --compat";  ///< for errors: what else than an anchor helps
};

/// A slice, or the part of one, that belongs to a cycle.
struct ReferenceMember {
  SliceIndex slice = 0;
  Ns begin = 0;
  Ns duration = 0;
};

struct ReferenceCycle {
  std::int64_t number = 0;  ///< 1-based, in time order
  model::Phase phase = model::Phase::other;
  SliceIndex anchor = kNone;  ///< the longest of its anchors
  Ns begin = 0;               ///< first begin and last end of its Python slices: "the cycle" in the reference's tables
  Ns end = 0;
  Ns full_begin = 0;  ///< the same over all its slices
  Ns full_end = 0;
  std::vector<ReferenceMember> members;  ///< by slice
};

struct ReferenceCycles {
  std::string anchor;
  std::string prefill_anchor;  ///< empty: none
  std::vector<ReferenceCycle> cycles;
  std::vector<SliceIndex> launcher;  ///< by row of Trace::gpu: the call of the same process that launched it, or kNone
  std::uint64_t cut = 0;             ///< parts of slices that lie across a border
  std::uint64_t not_placed = 0;      ///< slices left out because too many lie across very many cycles
};

/// Cuts the trace by the reference's rules, with these exceptions. Slices nest by containment and ties of begin put the
/// longer one outside; threads with one number in different processes are apart; all Python slices of a process can be
/// parents; what comes before the first anchor is looked for on that anchor's own thread.
/// Error: input, when no function repeats often enough, or the given anchor does not occur.
/// O(n log n) time apart from slices that lie across many cycles; about 17 bytes per slice plus 24 per member.
Result<ReferenceCycles> reference_cycles(const Trace& trace, const SliceOrder& order, const ReferenceOptions& options);

}  // namespace culprit::deepdive
