// What a step took on each rank, as tables.
#pragma once

#include <cstddef>
#include <vector>

#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// One table for each phase in which the ranks' changes are further apart than the tolerance: the `most_rows` that
/// changed most (0: all), by number. Where all changed alike the outcome says it.
std::vector<model::Table> rank_time_tables(const model::RunComparison& comparison, std::size_t most_rows);

}  // namespace culprit::report
