// What two recordings waited for inside of their work, held against each other: where threads were blocked, who ended
// that, who had the CPUs meanwhile.
#pragma once

#include <cstddef>
#include <span>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// By step where all recordings have steps, else by `unit`, else (none, or windows that are no unit) by second. Listed
/// is what differs surely (see surely_apart(); functions and rivals by their time, wakers by their number) and by half
/// a percent of what one unit takes in the baseline, or a hundredth of a wake-up; at most `most` of each, the largest
/// change of time first. Nothing where one side alone has steps, or the unit; none of a kind that a side does not tell,
/// or, of waits, not from the same length on.
model::OffCpuChanges off_cpu_changes(std::span<const model::Recording> base,
                                     std::span<const model::Recording> candidate, const model::WorkUnit* unit,
                                     std::size_t most = 10);

}  // namespace culprit::compare
