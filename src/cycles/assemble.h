// Makes cycles of cuts: windows on host and devices, which slice lies in which cycle, phase, workload, numbers over
// ranks.
#pragma once

#include "cycles/cutting.h"
#include "cycles/find.h"

namespace culprit::cycles {

Found assemble(const Trace& trace, const SliceOrder& order, const Cutting& cutting);

}  // namespace culprit::cycles
