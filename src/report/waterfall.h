// Where a difference of cycles comes from, as tables.
#pragma once

#include <cstddef>
#include <vector>

#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// One table for each phase that became slower or faster: the `most_lines` largest lines of its waterfall that are a
/// hundredth of the change or more (0: all lines), what all others make together, and the sum. None where the cycle
/// time is not shown to differ: its lines would accuse.
std::vector<model::Table> waterfall_tables(const model::RunComparison& comparison, std::size_t most_lines);

}  // namespace culprit::report
