// Cycles of recordings that mark no steps and in which no sequence of operations repeats: by their units of work.
#pragma once

#include <optional>

#include "cycles/cutting.h"
#include "model/work_units.h"

namespace culprit::cycles {

/// At most so many cycles: with more units one cycle holds several, equally many of them.
inline constexpr std::size_t kMostWorkCycles = 10'000;

/// Where one thread does the first unit, a cycle begins when it is woken for one; else cycles are the windows in which
/// work is counted. nullopt: nothing was recorded, or nothing ran.
std::optional<Cutting> cut_by_work(const model::WorkUnits& work);

}  // namespace culprit::cycles
