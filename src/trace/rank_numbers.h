// What the ranks of a run are called.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace culprit {

/// Their numbers, by row of Trace::ranks: those that the files say, where all of them do and no two say the same; else
/// the rows.
std::vector<std::int32_t> rank_numbers(const Trace& trace);

/// Of a row; a row of which nothing is known is its own number.
inline std::int32_t rank_number(const std::vector<std::int32_t>& numbers, std::uint16_t row) {
  return row < numbers.size() ? numbers[row] : std::int32_t{row};
}

}  // namespace culprit
