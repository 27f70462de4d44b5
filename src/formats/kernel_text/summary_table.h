// Summary tables of a profiler as text: torch.profiler's key_averages().table() in any column set, one or several in a
// file, each with an optional caption line above it ("forward only:").
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "model/kernel_log.h"

namespace culprit::formats::kernel_text {

/// True when the first lines hold a rule of dashes, a header whose first title is "Name", and a second rule.
bool looks_like_summary_table(std::string_view start);

/// Reads all tables. Rows that do not fit their table are counted. The total behind the percentages of a table is the
/// intersection over its rows of time / percent, each within its rounding, and of the printed total when there is one;
/// `missing_*` is what of it the listed rows do not hold. Errors: no table, or none with a row.
Result<model::KernelSummaries> parse_summary_tables(std::string_view text, std::string_view file);

/// The tables in the look they were read from; values as printed (SummaryValue::text).
std::string write_summary_tables(const model::KernelSummaries& summaries);

}  // namespace culprit::formats::kernel_text
