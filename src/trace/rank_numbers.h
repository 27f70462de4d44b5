// What the ranks of a run are called.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace culprit {

/// Their numbers, by row of Trace::ranks: those that the files say, where all of them do and no two say the same; else
/// the rows.
std::vector<std::int32_t> rank_numbers(const Trace& trace);

}  // namespace culprit
