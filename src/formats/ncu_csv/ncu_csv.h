// Nsight Compute's CSV, in every form people save it in.
//
// Long: one row per launch and metric ("Metric Name", "Metric Unit", "Metric Value"), with rows of rules in between.
// Wide (--page raw): one row per launch, one column per metric, a row of units below the header. Summary
// (--print-summary): Minimum, Maximum and Average of many launches. Around and between the rows stand program output
// and lines such as "==PROF== ...". Numbers follow the locale of the machine: 1,215.50 or 1.215,50; which of the two is
// decided once per file from all its numbers. Headers may repeat (several captures in one file).
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "model/kernel_log.h"

namespace culprit::formats::ncu_csv {

/// True when a line of `start` is the header of such a table.
bool looks_like(std::string_view start);

/// What a file holds: launches, or (summary form) one row per kernel, process and device. One of the two is filled.
struct NcuData {
  model::KernelLog log;
  model::KernelSummaries summaries;
  bool is_summary = false;
};

/// Reads it. Launches without a duration and rows that cannot be used are counted. Errors: no header, no row, or no
/// duration in the whole file.
Result<NcuData> parse(std::string_view text, std::string_view file);

}  // namespace culprit::formats::ncu_csv
