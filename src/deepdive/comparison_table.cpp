#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/units.h"
#include "deepdive/comparison_report.h"

namespace culprit::deepdive {

model::Table comparison_table(const Comparison& comparison) {
  using enum model::ColumnType;
  const auto& [a, b] = comparison.sides;
  model::Table table;
  table.title = "Ranking by the reference's Suspicion Score";
  table.key = "suspicion";
  table.columns = {{"Function", "function", name},
                   {"Metric", "metric", text},
                   {"Device", "device", text},
                   {"Score", "score", number, 4},
                   {"β " + a.label, "beta_baseline", percent, 2},
                   {"β " + b.label, "beta_candidate", percent, 2},
                   {"p of β", "p_beta", number, 2},
                   {"μ " + a.label, "mu_baseline", number, 2},
                   {"μ " + b.label, "mu_candidate", number, 2},
                   {"p of μ", "p_mu", number, 2}};
  const auto cell = [](const std::optional<double>& value) { return value ? model::Cell(*value) : model::Cell(); };
  for (const SuspicionRow& row : comparison.rows)
    table.rows.push_back({std::string(comparison.texts[row.function]), std::string(comparison.texts[row.metric]),
                          std::string(comparison.texts[row.device]), row.score, row.beta[0] / kPercent,
                          row.beta[1] / kPercent, cell(row.p_beta), row.mu[0], row.mu[1], cell(row.p_mu)});
  table.notes = {
      "β is the share of the cycle, μ the resource as the tables scale it. The score is |Δβ| (|z of β| + |z of log μ|)",
      "A share moves with the cycle, too, so a high score alone accuses nobody"};
  return table;
}

}  // namespace culprit::deepdive
