// A side on which no step was seen, because its thread could not run.
#pragma once

#include <string>

#include "core/json_writer.h"
#include "model/comparison.h"

namespace culprit::report {

/// The outcome: "Outcome: regression; steps 145/s -> at most 0.7/s: …". The comparison has a standstill, from the begin
/// on.
std::string standstill_line(const model::RunComparison& comparison);

/// As the member "standstill".
void write_standstill(JsonWriter& json, const model::Standstill& standstill);

}  // namespace culprit::report
