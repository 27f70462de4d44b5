#include <string>

#include "core/json_writer.h"
#include "deepdive/comparison_report.h"

namespace culprit::deepdive {

namespace {

void side(JsonWriter& json, std::string_view key, const ComparisonSide& facts, const StringTable& texts) {
  json.begin_object(key);
  json.member("label", facts.label);
  json.member("file", facts.file);
  json.member("pid", facts.pid);
  json.member("cycles", facts.cycle_us.size());
  json.member("mean_cycle_us", facts.mean_cycle_us);
  json.member("cycle_us", facts.cycle_us);
  json.begin_array("anchors");
  for (const StringId anchor : facts.anchors) json.value(texts[anchor]);
  json.end_array();
  json.member("rows", facts.rows);
  json.member("rows_without_metric", facts.rows_no_metric);
  json.member("rows_without_function", facts.rows_no_name);
  json.end_object();
}

void table_row(JsonWriter& json, const SuspicionRow& row, const StringTable& texts) {
  json.begin_object();
  json.member("function", texts[row.function]);
  json.member("metric", texts[row.metric]);
  json.member("device", texts[row.device]);
  json.member("suspicion_score", row.score);
  json.member("beta_baseline_pct", row.beta[0]);
  json.member("beta_candidate_pct", row.beta[1]);
  json.member("beta_delta_pct", row.delta_beta);
  json.member("beta_z", row.z_beta);
  json.member("beta_p", row.p_beta);
  json.member("beta_u_p", row.u_beta);
  json.member("mu_baseline", row.mu[0]);
  json.member("mu_candidate", row.mu[1]);
  json.member("mu_delta", row.delta_mu);
  json.member("mu_z", row.z_mu);
  json.member("log_mu_z", row.z_log_mu);
  json.member("mu_p", row.p_mu);
  json.member("mu_u_p", row.u_mu);
  json.end_object();
}

void comparison_object(JsonWriter& json, const Comparison& comparison) {
  const StringTable& texts = comparison.texts;
  json.begin_object();
  json.member("identifier", comparison.identifier);
  json.member("pairing", comparison.pairing == Pairing::strict ? "strict" : "cross");
  json.member("base_name", comparison.base_name);
  side(json, "baseline", comparison.sides[0], texts);
  side(json, "candidate", comparison.sides[1], texts);
  json.member("anchors_differ", comparison.anchors_differ);
  json.member("outcome", comparison.outcome);
  model::write_verdicts(json, comparison.verdicts);
  json.begin_array("findings");
  for (const SuspicionFinding& finding : comparison.findings) {
    json.begin_object();
    json.member("row", finding.row);
    json.member("resource_rows", finding.resources);
    json.end_object();
  }
  json.end_array();
  json.begin_array("functions_without_metric");
  for (const UnscoredFunction& entry : comparison.unscored) {
    json.begin_object();
    json.member("function", texts[entry.function]);
    json.member("device", texts[entry.device]);
    json.member("beta_baseline_pct", entry.beta[0]);
    json.member("beta_candidate_pct", entry.beta[1]);
    json.end_object();
  }
  json.end_array();
  json.begin_array("rows");
  for (const SuspicionRow& row : comparison.rows) table_row(json, row, texts);
  json.end_array();
  json.end_object();
}

void input_object(JsonWriter& json, const InputReport& input) {
  json.begin_object();
  json.member("file", input.file);
  json.member("rows", input.rows);
  json.member("bad_rows", input.bad_rows);
  json.member("bad_cells", input.bad_cells);
  json.begin_array("damage");
  for (const model::InputDamage& damage : input.first) {
    json.begin_object();
    json.member("line", damage.line);
    json.member("what", damage.what);
    json.member("remedy", damage.remedy);
    json.end_object();
  }
  json.end_array();
  json.member("unknown_columns", input.unknown_columns);
  json.end_object();
}

}  // namespace

std::string comparisons_json(const ComparisonSet& set) {
  std::string text;
  JsonWriter json(text, JsonForm::packed);
  json.begin_object();
  json.member("score", "suspicion");
  json.begin_array("comparisons");
  for (const Comparison& comparison : set.comparisons) comparison_object(json, comparison);
  json.end_array();
  json.begin_array("not_compared");
  for (const Unpaired& entry : set.unpaired) {
    json.begin_object();
    json.member("file", entry.file);
    json.member("pid", entry.pid);
    json.member("why", entry.why);
    json.end_object();
  }
  json.end_array();
  json.begin_array("inputs");
  for (const InputReport& input : set.inputs) input_object(json, input);
  json.end_array();
  json.member("notes", set.notes);
  json.end_object();
  json.finish();
  return text;
}

}  // namespace culprit::deepdive
