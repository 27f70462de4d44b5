#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/display_width.h"
#include "core/escape.h"
#include "deepdive/comparison_report.h"
#include "deepdive/comparison_text.h"
#include "stats/quantile.h"

namespace culprit::deepdive {

namespace {

constexpr std::size_t kTerminalNameWidth = 64;
constexpr std::size_t kCauseWidth = 80;

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string padding(used < width ? width - used : 0, ' ');
  return right ? padding + text : text + padding;
}

std::string rows_text(const Comparison& comparison, std::size_t most_rows, const NameStyle& style) {
  if (comparison.rows.empty()) return "";
  if (std::ranges::all_of(comparison.rows, [](const SuspicionRow& row) { return !(row.score > 0); }))
    return "  No rows: nothing takes another share, so every score is 0\n";
  std::vector<std::vector<std::string>> table = {
      {"Function", "Metric", "Device", "Score", "β base %", "β cand %", "μ base", "μ cand"}};
  const std::size_t shown = std::min(most_rows, comparison.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const SuspicionRow& row = comparison.rows[i];
    table.push_back({style.name(row.function), style.name(row.metric), style.name(row.device),
                     fmt::format("{:.4f}", row.score), fmt::format("{:.2f}", row.beta[0]),
                     fmt::format("{:.2f}", row.beta[1]), with_thousands(row.mu[0], 2), with_thousands(row.mu[1], 2)});
  }
  std::vector<std::size_t> widths(table[0].size(), 0);
  for (const auto& cells : table)
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], display_width(cells[c]));
  std::string out = "\n";
  for (const auto& cells : table) {
    std::string line = " ";
    for (std::size_t c = 0; c < cells.size(); ++c) line += " " + padded(cells[c], widths[c], c > 2);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (shown < comparison.rows.size()) out += fmt::format("  ... {} more rows\n", comparison.rows.size() - shown);
  return out;
}

/// Mean per cycle, us: its share of the mean cycle.
double time_of(const Comparison& comparison, const SuspicionRow& row, std::size_t side) {
  return row.beta[side] / 100 * comparison.sides[side].mean_cycle_us;
}

bool takes_as_long(const Comparison& comparison, const SuspicionRow& row) {
  constexpr double kAlike = 0.1;
  const double before = time_of(comparison, row, 0);
  const double after = time_of(comparison, row, 1);
  return std::abs(after - before) <= kAlike * std::max(before, after);
}

std::string findings_text(const Comparison& comparison, const NameStyle& style) {
  if (comparison.findings.empty())
    return fmt::format("  Findings: none with a Suspicion Score above {:g}\n", kSuspicionThreshold);
  std::string out;
  std::size_t alike = 0;
  for (const SuspicionFinding& finding : comparison.findings) {
    const SuspicionRow& row = comparison.rows[finding.row];
    if (takes_as_long(comparison, row)) {
      ++alike;
      continue;
    }
    out += fmt::format("  - {} on {}: β {:.2f} -> {:.2f} % (score {:.2f}), {} -> {} us per cycle\n",
                       style.name(row.function), style.name(row.device), row.beta[0], row.beta[1], row.score,
                       with_thousands(time_of(comparison, row, 0), 2), with_thousands(time_of(comparison, row, 1), 2));
    for (const std::size_t i : finding.resources) {
      const SuspicionRow& resource = comparison.rows[i];
      out += fmt::format("      {}: {} -> {}\n", style.name(resource.metric), with_thousands(resource.mu[0], 2),
                         with_thousands(resource.mu[1], 2));
    }
  }
  if (!out.empty()) out.insert(0, "  First findings:\n");
  if (alike > 0)
    out += fmt::format(
        "  {} of the {} highest scores: a share that moved with the cycle, {} as long per cycle as before\n", alike,
        comparison.findings.size(), alike == 1 ? "it takes" : "they take");
  return out;
}

}  // namespace

std::string comparisons_terminal(const ComparisonSet& set, std::size_t most_rows) {
  std::string out;
  const auto safe = [](std::string_view text) { return escape_terminal(text); };
  for (const Comparison& comparison : set.comparisons) {
    const NameStyle style{
        [&](StringId id) { return shorten_middle(escape_terminal(comparison.texts[id]), kTerminalNameWidth); }, safe};
    const auto& [a, b] = comparison.sides;
    out += comparison_title(comparison, style) + "\n";
    out += fmt::format("  Cycles: {} {}, {} {}\n", a.label, a.cycle_us.size(), b.label, b.cycle_us.size());
    out += fmt::format("  Average cycle time: {} us -> {} us ({})\n", with_thousands(a.mean_cycle_us, 2),
                       with_thousands(b.mean_cycle_us, 2), change_percent(a.mean_cycle_us, b.mean_cycle_us));
    if (const std::array medians = {stats::median(a.cycle_us), stats::median(b.cycle_us)};
        std::isfinite(medians[0]) && std::isfinite(medians[1]))
      out += fmt::format("  Median cycle time: {} us -> {} us ({})\n", with_thousands(medians[0], 2),
                         with_thousands(medians[1], 2), change_percent(medians[0], medians[1]));
    if (!comparison.outcome.empty()) out += fmt::format("  Outcome by these durations: {}\n", comparison.outcome);
    for (const std::string& cause : comparison.causes) {
      const std::string indent = cause.starts_with(' ') ? "    " : "  ";
      const std::vector<std::string> lines = wrap(safe(cause), kCauseWidth - indent.size() - 2);
      for (std::size_t i = 0; i < lines.size(); ++i)
        out += fmt::format("{}{}{}\n", indent, i == 0 ? "" : "  ", lines[i]);
    }
    out += findings_text(comparison, style);
    for (const std::string& note : comparison_notes(comparison, set, style)) out += "  Note: " + note + "\n";
    if (most_rows > 0) out += rows_text(comparison, most_rows, style);
    out += "\n";
  }
  for (const std::string& note : set_notes(set, {{}, safe})) out += "Note: " + note + "\n";
  return out;
}

}  // namespace culprit::deepdive
