// Who else used the CPUs while a program was recorded.
#pragma once

#include <vector>

#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit {

/// Processes that were not recorded and the CPUs they took on average in [begin, end); those of one name are one. Most
/// first.
std::vector<model::Bystander> bystanders(const Trace& trace, Ns begin, Ns end);

}  // namespace culprit
