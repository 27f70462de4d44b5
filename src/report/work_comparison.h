// Two recordings by their units of work, as lines, tables and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// Outcome, throughput, what a unit took, and who ran beside, of a comparison that has `work`.
std::vector<std::string> work_outcome_lines(const model::RunComparison& comparison);

/// The same as numbers: throughput and time worked per unit with their intervals.
model::Table work_outcome_table(const model::RunComparison& comparison);

/// What a unit took; its system calls. At most `most_rows` calls; 0: all.
std::vector<model::Table> work_comparison_tables(const model::WorkComparison& work, std::size_t most_rows);

/// The member "work".
void write_work_comparison(JsonWriter& json, const model::WorkComparison& work);

}  // namespace culprit::report
