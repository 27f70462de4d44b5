// Requests to disks and functions on the CPU of two recordings, side by side.
#pragma once

#include <cstddef>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// Requests to disks, at most `most_rows` kinds, and the functions that ran more or less than before; those without
/// rows are left out. 0: all, and all columns, as files have them.
std::vector<model::Table> collected_tables(const model::RunComparison& comparison, std::size_t most_rows);

/// Members "disks", "on_cpu" and "python" of the answer.
void write_collected(JsonWriter& json, const model::RunComparison& comparison);

}  // namespace culprit::report
