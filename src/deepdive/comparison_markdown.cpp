#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/display_width.h"
#include "core/escape.h"
#include "core/units.h"
#include "deepdive/comparison_report.h"
#include "deepdive/comparison_text.h"

namespace culprit::deepdive {

namespace {

constexpr std::size_t kNameWidth = 60;

/// Shortens long names and remembers the full ones for footnotes.
class Footnotes {
 public:
  explicit Footnotes(const StringTable& texts) : texts_(texts) {}

  const std::string& show(StringId id) {
    const auto [found, added] = shown_.try_emplace(id);
    if (!added) return found->second;
    const std::string name = escape_terminal(texts_[id]);
    const std::string cut = shorten_middle(name, kNameWidth);
    found->second = escape_markdown(cut);
    if (cut.size() < name.size()) {
      full_.push_back(id);
      found->second += fmt::format("[^{}]", full_.size());
    }
    return found->second;
  }

  [[nodiscard]] std::string definitions() const {
    if (full_.empty()) return {};
    std::string out = "\n";
    for (std::size_t i = 0; i < full_.size(); ++i)
      out += fmt::format("[^{}]: {}\n", i + 1, escape_markdown(texts_[full_[i]]));
    return out;
  }

 private:
  const StringTable& texts_;
  std::unordered_map<StringId, std::string> shown_;
  std::vector<StringId> full_;
};

/// A pipe table whose columns are padded, so that it also reads well as text.
class PipeTable {
 public:
  struct Column {
    std::string title;
    bool right = true;
  };
  explicit PipeTable(std::vector<Column> columns) : columns_(std::move(columns)) {
    for (const Column& column : columns_) widths_.push_back(std::max<std::size_t>(display_width(column.title), 3));
  }
  void row(std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], display_width(cells[i]));
    rows_.push_back(std::move(cells));
  }
  [[nodiscard]] std::string text() const {
    std::vector<std::string> titles;
    titles.reserve(columns_.size());
    for (const Column& column : columns_) titles.push_back(column.title);
    std::string out = line(titles) + "|";
    for (std::size_t i = 0; i < columns_.size(); ++i)
      out += columns_[i].right ? std::string(widths_[i] + 1, '-') + ":|" : ":" + std::string(widths_[i] + 1, '-') + "|";
    out += "\n";
    for (const auto& cells : rows_) out += line(cells);
    return out;
  }

 private:
  [[nodiscard]] std::string line(const std::vector<std::string>& cells) const {
    std::string out = "|";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string padding(widths_[i] - display_width(cells[i]), ' ');
      out += columns_[i].right ? " " + padding + cells[i] + " |" : " " + cells[i] + padding + " |";
    }
    return out + "\n";
  }
  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

std::string summary(const Comparison& comparison) {
  const auto& [a, b] = comparison.sides;
  PipeTable table(
      {{"Metric", false}, {a.label}, {b.label}, {fmt::format("Δ ({} - {})", b.label, a.label)}, {"Change (%)"}});
  const auto cycles = [](const ComparisonSide& side) { return static_cast<double>(side.cycle_us.size()); };
  table.row({"Total Cycles", with_thousands(cycles(a), 0), with_thousands(cycles(b), 0),
             with_thousands(cycles(b) - cycles(a), 0), "-"});
  table.row({"Avg Cycle Time (us)", with_thousands(a.mean_cycle_us, 2), with_thousands(b.mean_cycle_us, 2),
             with_thousands(b.mean_cycle_us - a.mean_cycle_us, 2), change_percent(a.mean_cycle_us, b.mean_cycle_us)});
  return "## 1. High-Level Performance Summary\n\n" + table.text();
}

std::string durations(const Comparison& comparison) {
  const auto& [a, b] = comparison.sides;
  PipeTable table({{"Time Rank"}, {a.label + " Time (us)"}, {b.label + " Time (us)"}, {"Δ (us)"}, {"Δ (%)"}});
  for (std::size_t i = 0; i < std::max(a.cycle_us.size(), b.cycle_us.size()); ++i) {
    const bool has_a = i < a.cycle_us.size();
    const bool has_b = i < b.cycle_us.size();
    table.row({fmt::format("{}", i + 1), has_a ? with_thousands(a.cycle_us[i], 2) : "-",
               has_b ? with_thousands(b.cycle_us[i], 2) : "-",
               has_a && has_b ? with_thousands(b.cycle_us[i] - a.cycle_us[i], 2) : "-",
               has_a && has_b ? change_percent(a.cycle_us[i], b.cycle_us[i]) : "-"});
  }
  return "\n## 2. Cycle Duration Distribution Comparison\n\n" + table.text();
}

std::string significance(const std::optional<double>& p) {
  if (!p) return "though no test is possible (both sides are constant)";
  return fmt::format(
      "{} (p-value: {:.3f})",
      *p < kSignificant ? "which is statistically significant" : "though this may not be statistically significant",
      *p);
}

std::string conclusion(const Comparison& comparison, Footnotes& names) {
  const auto& [a, b] = comparison.sides;
  std::string out = "### Overview\n\n";
  if (comparison.findings.empty())
    return out + fmt::format("No function of {} and {} differs with a Suspicion Score above {:g}.\n\n", a.label,
                             b.label, kSuspicionThreshold);
  const SuspicionRow& top = comparison.rows[comparison.findings[0].row];
  out += fmt::format(
      "The largest difference between {} and {} by Suspicion Score is **{}**: its share of the cycle time shows "
      "{}.\n\n### Key Findings:\n\n",
      a.label, b.label, names.show(top.function), top.delta_beta > 0 ? "an increase" : "a decrease");
  bool above_100 = false;
  for (const SuspicionFinding& finding : comparison.findings) {
    const SuspicionRow& row = comparison.rows[finding.row];
    above_100 = above_100 || row.beta[0] > 100 || row.beta[1] > 100;
    out += fmt::format("- **{}** on **{}**\n", names.show(row.function), names.show(row.device));
    out += fmt::format("  - Share of the cycle time (β) **{}** from **{:.2f}%** to **{:.2f}%** ({:+.2f} ppt), {}.\n",
                       row.delta_beta > 0 ? "increased" : "decreased", row.beta[0], row.beta[1], row.delta_beta,
                       significance(row.p_beta));
    if (!finding.resources.empty()) out += "  - Resources while it ran (μ):\n";
    for (const std::size_t i : finding.resources) {
      const SuspicionRow& resource = comparison.rows[i];
      above_100 = above_100 || resource.beta[0] > 100 || resource.beta[1] > 100;
      out += fmt::format("    - **{}** {} from {} to {}.\n", names.show(resource.metric),
                         resource.delta_mu > 0 ? "increased" : "decreased", with_thousands(resource.mu[0], 2),
                         with_thousands(resource.mu[1], 2));
    }
  }
  if (above_100)
    out +=
        "\n*Note: β above 100% means that executions of the function overlapped (several threads, cores or streams); "
        "their times "
        "are added.*\n";
  out +=
      "\n**Recommendation:** Begin with the function of the highest **Suspicion Score** and look at how its share (β) "
      "and the "
      "resources while it ran (μ) changed together. The score ranks differences; it does not name a cause.\n\n";
  return out;
}

std::string details(const Comparison& comparison, Footnotes& names) {
  const std::string& a = comparison.sides[0].label;
  const std::string& b = comparison.sides[1].label;
  PipeTable table({{"Function Name", false},
                   {"Metric Name", false},
                   {"Device", false},
                   {"Suspicion Score"},
                   {fmt::format("β_{}(%)", a)},
                   {fmt::format("β_{}(%)", b)},
                   {"Δβ(%)"},
                   {"Z-Score(β)"},
                   {"p-value(β)"},
                   {"U-test p(β)"},
                   {fmt::format("μ_{}", a)},
                   {fmt::format("μ_{}", b)},
                   {"Δμ"},
                   {"Z-Score(μ)"},
                   {"Z-Score(log_μ)"},
                   {"p-value(μ)"},
                   {"U-test p(μ)"}});
  const auto p = [](const std::optional<double>& value) { return value ? table_number(*value, 3) : std::string(); };
  for (const SuspicionRow& row : comparison.rows) {
    table.row({names.show(row.function), names.show(row.metric), names.show(row.device), table_number(row.score, 4),
               table_number(row.beta[0], 2), table_number(row.beta[1], 2), table_number(row.delta_beta, 2),
               table_number(row.z_beta, 2), p(row.p_beta), p(row.u_beta), with_thousands(row.mu[0], 2),
               with_thousands(row.mu[1], 2), table_number(row.delta_mu, 2), table_number(row.z_mu, 2),
               table_number(row.z_log_mu, 2), p(row.p_mu), p(row.u_mu)});
  }
  return "### Detailed comparison table\n\nOne row per (function, metric, device) of both sides, the highest "
         "**Suspicion Score** "
         "first; rows of equal score by name.\n\n" +
         table.text();
}

constexpr std::string_view kLegend = R"(
## 4. Legend

- **β (Beta)**: share of the cycle time that the function took, in percent.
- **μ (Mu)**: mean of the resource while the function ran, in the scale of the profile table (percent; clocks 100 x MHz; links 100 x bytes/s).
- **Device**: where the function ran and the resource was measured.
- **Z-Score(β/μ/log_μ)**: difference in units of the baseline's standard deviation; 0 when the baseline shows no spread.
- **p-value / U-test p**: Welch's t test and the Mann-Whitney U test; below 0.05 a difference is called significant. Not corrected for the number of rows. Empty: both sides are constant and equal.
- **Suspicion Score**: `|Δβ| * (|Z-Score(β)| + |Z-Score(log_μ)|)`; look at the highest first.
)";

}  // namespace

std::string comparison_markdown(const Comparison& comparison, const ComparisonSet& set) {
  Footnotes names(comparison.texts);
  const NameStyle style{[&](StringId id) { return names.show(id); },
                        [](std::string_view text) { return escape_markdown(text); }};
  std::string out = "# " + comparison_title(comparison, style) + "\n\n";
  if (const auto notes = comparison_notes(comparison, set, style); !notes.empty()) {
    out += "> **Notes on this comparison**\n>\n";
    for (const std::string& note : notes)
      out += note.starts_with("WARNING") ? "> - **" + note + "**\n" : "> - " + note + "\n";
    out += "\n";
  }
  out += summary(comparison) + durations(comparison);
  out += "\n## 3. In-depth Core Metric Comparison\n\n" + conclusion(comparison, names) + details(comparison, names);
  out += kLegend;
  out += names.definitions();
  return out;
}

}  // namespace culprit::deepdive
