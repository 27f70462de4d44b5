#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>
#include <unordered_map>

#include "core/escape.h"
#include "deepdive/comparison_report.h"

namespace culprit::deepdive {

std::string comparison_csv(const Comparison& comparison) {
  const std::string& a = comparison.sides[0].label;
  const std::string& b = comparison.sides[1].label;
  std::string out = fmt::format(
      "Function Name,Metric Name,Device,Suspicion Score,β_{0}(%),β_{1}(%),Δβ(%),Z-Score(β),p-value(β),U-test "
      "p(β),μ_{0},μ_{1},Δμ,"
      "Z-Score(μ),Z-Score(log_μ),p-value(μ),U-test p(μ)\n",
      a, b);
  std::unordered_map<StringId, std::string> names;
  const auto number = [&](double value) {
    out += ',';
    if (std::isfinite(value)) fmt::format_to(std::back_inserter(out), "{:.6f}", value);
  };
  const auto optional = [&](const std::optional<double>& value) { number(value.value_or(model::kNoNumber)); };
  for (const SuspicionRow& row : comparison.rows) {
    // Names repeat over many rows and are long.
    std::string& name = names[row.function];
    if (name.empty()) name = escape_csv(comparison.texts[row.function]);
    out += name + ',';
    out += escape_csv(comparison.texts[row.metric]) + ',';
    out += escape_csv(comparison.texts[row.device]);
    number(row.score);
    number(row.beta[0]);
    number(row.beta[1]);
    number(row.delta_beta);
    number(row.z_beta);
    optional(row.p_beta);
    optional(row.u_beta);
    number(row.mu[0]);
    number(row.mu[1]);
    number(row.delta_mu);
    number(row.z_mu);
    number(row.z_log_mu);
    optional(row.p_mu);
    optional(row.u_mu);
    out += '\n';
  }
  return out;
}

}  // namespace culprit::deepdive
