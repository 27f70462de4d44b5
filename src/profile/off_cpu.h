// What recorded threads waited for inside of their work, for comparing.
#pragma once

#include <vector>

#include "model/collected.h"
#include "model/cycles.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::profile {

/// `windows`: in order, not overlapping; of many neighbours are put together. A wait for work is left out: as of units
/// of work (cycles/waits.h). With `cycles` all waits of the threads that run them count, but for those of any thread
/// that last through a whole cycle. O(slices + waits log waits).
model::OffCpu off_cpu_in(const Trace& trace, const std::vector<model::WorkWindow>& windows,
                         const model::Cycles& cycles);

}  // namespace culprit::profile
