// Sums up the cycles of a run for `culprit info`.
#pragma once

#include "model/cycles.h"
#include "model/trace_info.h"

namespace culprit::summary {

/// How the cycles were found and, per phase, how many there are, how long and how busy.
model::CyclesInfo cycles_info(const model::Cycles& cycles);

}  // namespace culprit::summary
