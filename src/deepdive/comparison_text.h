// Words and numbers that the forms of a comparison report share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "deepdive/comparison.h"

namespace culprit::deepdive {

/// How a form shows names: `id` one of the comparison's texts, `text` any other text of unknown origin.
struct NameStyle {
  std::function<std::string(StringId id)> name;
  std::function<std::string(std::string_view text)> text;
};

/// "1,234.50", with `decimals` decimals.
std::string with_thousands(double value, int decimals);

/// "+4.66%": change from `base` to `candidate`; "+inf%" from 0.
std::string change_percent(double base, double candidate);

/// The value rounded to `decimals` decimals, then in at most six significant digits without trailing zeros: how the
/// published tables print numbers.
std::string table_number(double value, int decimals);

/// "# Strict Performance Comparison: case (PID: 7)", without the mark.
std::string comparison_title(const Comparison& comparison, const NameStyle& style);

/// Rows without a name, processes without partner, damage in the input: what is in no comparison of any kind.
std::vector<std::string> input_notes(const Comparison& comparison, const ComparisonSet& set, const NameStyle& style);

/// What a reader has to know before believing the numbers: different anchors, rows left out, processes without partner,
/// damage in the input. One sentence or two each; the most serious first.
std::vector<std::string> comparison_notes(const Comparison& comparison, const ComparisonSet& set,
                                          const NameStyle& style);

/// Notes about files and processes that belong to no comparison of the set.
std::vector<std::string> set_notes(const ComparisonSet& set, const NameStyle& style);

}  // namespace culprit::deepdive
