// The fixed cyclic order of what a step does once, and the walk that cuts a list of operations at every wrap of it: so
// lost events and parts of varying length (other kernels, prefill between decodes) do not move a cut.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/hash.h"
#include "cycles/operations.h"
#include "cycles/token_classes.h"

namespace culprit::cycles {

/// What a list of operations is cut by.
struct Wheel {
  std::unordered_map<std::uint64_t, std::uint32_t, Hash> rank_of;  // token hash -> place in the order
  std::vector<std::uint32_t> offset;                               // median operations since the first token
  double median_length = 0;                                        // operations per step
  bool fits_recording = false;                                     // whole steps from the first operation to the last
  bool clear_begin = false;      // what precedes ends a step, or what follows begins one
  std::uint32_t back = 0;        // operations from the begin of a step to its first token
  std::uint64_t first_name = 0;  // what runs first
  double gap_ratio = 1;          // gap before the begin over the next largest one
};

/// The wheel of class `c`. It begins at the largest median launch gap that keeps its place between two tokens of the
/// class; gaps count more after what ends a step and before what begins one. A recording that holds whole steps from
/// its first operation to its last decides.
Wheel build_wheel(const std::vector<Operation>& list, const std::vector<Token>& tokens, const TokenClass& c);

/// Operations at which a cycle begins, ascending. No cycle holds nothing but waits.
std::vector<std::uint32_t> walk(const std::vector<Operation>& list, const Wheel& wheel);

}  // namespace culprit::cycles
