// Sums up what a recording counted over its whole time, for comparing.
#pragma once

#include <vector>

#include "model/collected.h"
#include "model/cycles.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Calls and requests of the whole recording. `windows`: in order, not overlapping; samples outside of them are left
/// out. `cycles` tell which threads run steps. O(totals + slices + samples).
model::Collected collected_in(const Trace& trace, const std::vector<model::WorkWindow>& windows,
                              const model::Cycles& cycles);

}  // namespace culprit::profile
