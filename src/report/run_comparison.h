// Showing a comparison of two runs: text for a terminal, Markdown, CSV, JSON.
#pragma once

#include <cstddef>
#include <string>

#include "model/comparison.h"

namespace culprit::report {

/// Outcome, functions that changed, what the threads did, what moved, notes. At most `most_rows` functions per phase.
/// A `summary` is outcome and notes alone; `wide`: tables as wide as they get, else 80 columns.
std::string comparison_terminal(const model::RunComparison& comparison, std::size_t most_rows, bool summary = false,
                                bool wide = false);

/// The same with all that changed.
std::string comparison_markdown(const model::RunComparison& comparison);

/// Every function, one row each.
std::string comparison_csv(const model::RunComparison& comparison);

/// Everything, as docs/diff.md describes it.
std::string comparison_json(const model::RunComparison& comparison);

}  // namespace culprit::report
