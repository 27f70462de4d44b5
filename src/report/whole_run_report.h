// Whole runs side by side, for people where steps are not judged, and always as JSON.
#pragma once

#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// None where the time of steps, or of units of work, is judged, or nothing was recorded.
std::vector<model::Table> whole_run_tables(const model::RunComparison& comparison);

/// The object `whole_run`, if it is known.
void write_whole_run(JsonWriter& json, const model::RunComparison& comparison);

}  // namespace culprit::report
