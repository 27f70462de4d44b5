// Showing a comparison by Suspicion Score: Markdown and CSV in the published form, JSON for programs, text for a
// terminal.
#pragma once

#include <string>

#include "deepdive/comparison.h"
#include "model/table.h"

namespace culprit::deepdive {

/// The report of one comparison of `set`: notes about what was left out, summary, cycle durations, conclusion, table,
/// legend. Long names are shortened with a footnote that has the full one.
std::string comparison_markdown(const Comparison& comparison, const ComparisonSet& set);

/// The table of one comparison, full names, six decimals, missing cells empty.
std::string comparison_csv(const Comparison& comparison);

/// Its ranking: shares as fractions, missing cells empty.
model::Table comparison_table(const Comparison& comparison);

/// Everything in `set` as one JSON object.
std::string comparisons_json(const ComparisonSet& set);

/// Summary for a terminal: per comparison cycle time, first findings and notes; then what has no partner. `most_rows`
/// rows of each table are shown (0: none).
std::string comparisons_terminal(const ComparisonSet& set, std::size_t most_rows);

}  // namespace culprit::deepdive
