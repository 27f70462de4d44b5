// Parts taken for steps: a sequence of cycles that is itself periodic, such as 1, 1515, 1, 1515 operations where a step
// copies its input in two pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "cycles/operations.h"

namespace culprit::cycles {

/// In which order different kinds of cycles follow each other.
struct Alternation {
  std::uint32_t period = 1;          ///< cycles after which the kinds come again; 1: all alike, or in no order
  std::vector<std::uint32_t> sizes;  ///< operations of the cycles of one period, in order, by their medians
  bool parts = false;                ///< they are parts of a step rather than steps
  std::uint32_t updates_every = 0;   ///< cycles: the optimizer is in one of so many equal passes
};

/// Looks at the cycles of `list` that begin at `cuts`. Kinds are told apart by the names of what runs, so lost events
/// and other shapes change nothing; a period counts when it holds for three of four cycles and is no matter of chance.
/// Cycles are parts of a step when some of them only copy, or are small, or hold what a step does once where others do
/// not. They are steps when they are alike but for an optimizer (accumulated gradients), or all of them sample or
/// attend as a server does (prefill among decodes).
Alternation find_alternation(const std::vector<Operation>& list, const std::vector<std::uint32_t>& cuts);

}  // namespace culprit::cycles
