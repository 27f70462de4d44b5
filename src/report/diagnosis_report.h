// What one run says of itself: text for a terminal, Markdown, JSON.
#pragma once

#include <string>
#include <vector>

#include "model/run_diagnosis.h"
#include "model/table.h"

namespace culprit {
class JsonWriter;
}

namespace culprit::report {

/// Where the mean step goes.
model::Table step_parts_table(const model::RunDiagnosis& diagnosis);

/// The phases held against each other, a row each; no rows: there are no two to hold.
model::Table phases_table(const model::RunDiagnosis& diagnosis);

/// What was found, a line each; lines of evidence begin with two spaces. Not escaped.
std::vector<std::string> diagnosis_lines(const model::RunDiagnosis& diagnosis);

/// Members of the object that is open, as docs/verdicts.md describes them.
void write_diagnosis(JsonWriter& json, const model::RunDiagnosis& diagnosis);

}  // namespace culprit::report
