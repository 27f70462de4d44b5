// Operators of the host as a sequence, for runs without GPU work.
#pragma once

#include <vector>

#include "cycles/operations.h"

namespace culprit::cycles {

/// Per row of Trace::ranks the outermost repeated operators of its thread with most operators, in order.
std::vector<Operations> list_operators(const Trace& trace, const SliceOrder& order);

/// Per row of Trace::ranks the begins of these operators, ascending.
std::vector<std::vector<Ns>> operator_times(const Trace& trace, const SliceOrder& order);

}  // namespace culprit::cycles
