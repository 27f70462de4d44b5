// Sums up the cycles of a run for `culprit info`.
#pragma once

#include <optional>

#include "model/cycles.h"
#include "model/trace_info.h"
#include "trace/trace.h"

namespace culprit::summary {

/// How the cycles were found and, per phase, how many there are, how long and how busy.
model::CyclesInfo cycles_info(const model::Cycles& cycles);

/// What the steps waited for; nullopt where the scheduling of no thread that runs them is known.
std::optional<model::StepTimes> step_times(const Trace& trace, const model::Cycles& cycles);

}  // namespace culprit::summary
