// The call tree of the Python slices of a trace, and the functions that could delimit its cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace culprit::deepdive {

/// Clocks are rounded to nanoseconds on reading: two ends that were equal may differ by so much.
inline constexpr Ns kRounding = 2;

struct CallTree {
  std::vector<SliceIndex> parent;   ///< by slice: the Python slice around it on its thread, or kNone
  std::vector<std::int32_t> depth;  ///< by slice: 0 for roots, -1 for what is not in the tree
};

/// A slice that takes time and is a Python function.
bool is_python(const Trace& trace, const Slice& slice);

/// Nests the Python slices of each thread by containment; a thread with a single one is left out. O(n).
CallTree call_tree(const Trace& trace, const SliceOrder& order);

/// How often and how long a function ran at the outermost level of its thread.
struct AnchorCandidate {
  StringId name = 0;
  std::uint64_t count = 0;  ///< calls at depth 0 that are not inside a call of the same name
  Ns total = 0;             ///< of these
  Ns total_any_depth = 0;
  [[nodiscard]] double mean() const { return static_cast<double>(total) / static_cast<double>(count); }
};

/// Functions that ran at least once at the outermost level, by name id. Recursive calls count once.
std::vector<AnchorCandidate> outermost_functions(const Trace& trace, const SliceOrder& order, const CallTree& tree);

/// The candidate that delimits cycles, or kNone: of those with at least three calls the one with the largest total; one
/// with longer calls and at least 90 % of that total is preferred. Waiting functions never are.
StringId choose_anchor(const Trace& trace, const std::vector<AnchorCandidate>& candidates);

/// A function of at most a tenth of the anchor's calls that each take more than three times as long, or kNone.
StringId choose_prefill_anchor(const Trace& trace, const std::vector<AnchorCandidate>& candidates, StringId anchor);

}  // namespace culprit::deepdive
