// Two recordings by their units of work, as lines, tables and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// Of a comparison that has `work`: outcome and throughput.
std::vector<std::string> work_answer_lines(const model::RunComparison& comparison);

/// Who ran beside, what a unit took, and what that rests on.
std::vector<std::string> work_detail_lines(const model::RunComparison& comparison);

/// The same as numbers: throughput and time worked per unit with their intervals.
model::Table work_outcome_table(const model::RunComparison& comparison);

/// What a unit took; its system calls. At most `most_rows` calls; 0: all.
std::vector<model::Table> work_comparison_tables(const model::WorkComparison& work, std::size_t most_rows);

/// The member "work".
void write_work_comparison(JsonWriter& json, const model::WorkComparison& work);

}  // namespace culprit::report
