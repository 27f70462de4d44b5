// One cell of a summary table: a number, its unit, and what its rounding hides.
#pragma once

#include <optional>
#include <string_view>

#include "model/kernel_log.h"

namespace culprit::formats::kernel_text {

struct ParsedCell {
  model::SummaryColumnKind kind = model::SummaryColumnKind::text;
  model::SummaryValue value;
};

/// Reads "325.435ms" (to ns), "29.86%" (to a fraction), "1.50 Kb" (to bytes), "194", "12.5"; nullopt for anything else.
std::optional<ParsedCell> parse_summary_cell(std::string_view text);

/// Fills totals, the missing rest and the named columns of every row from the cells.
void derive_summary(model::KernelSummary& table);

}  // namespace culprit::formats::kernel_text
