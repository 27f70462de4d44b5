// What the threads of two recordings waited for inside of their work, side by side.
#pragma once

#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// "longer", "shorter", "more often", "less often", "new", "gone".
std::string_view to_string(model::OffCpuChanged changed);

/// Where threads were blocked, who ended that, who ran instead; those without rows are left out.
std::vector<model::Table> off_cpu_tables(const model::OffCpuChanges& changes);

/// The three in one, for programs; the column `what` says which.
model::Table off_cpu_rows(const model::OffCpuChanges& changes);

/// The member "off_cpu" of the answer.
void write_off_cpu(JsonWriter& json, const model::OffCpuChanges& changes);

}  // namespace culprit::report
