// How often steps of like work call what they call, in sentences and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"

namespace culprit::report {

/// One sentence for each phase in which other numbers of calls make a part of a step that matters. None where they are
/// named as a cause.
std::vector<std::string> calls_lines(const model::RunComparison& comparison);

/// The array `calls_per_step`.
void write_calls(JsonWriter& json, const model::RunComparison& comparison);

}  // namespace culprit::report
