#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "core/escape.h"
#include "deepdive/comparison_report.h"
#include "deepdive/comparison_text.h"

namespace culprit::deepdive {

namespace {

using namespace model;  // outcomes

/// Writes JSON text in order; knows only when a comma is due.
class JsonText {
 public:
  void open(char bracket, std::string_view key = {}) {
    lead(key);
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  void text(std::string_view key, std::string_view value) {
    lead(key);
    out_ += '"' + escape_json(value) + '"';
  }
  void number(std::string_view key, double value) {
    lead(key);
    if (std::isfinite(value))
      fmt::format_to(std::back_inserter(out_), "{}", value);
    else
      out_ += "null";
  }
  void whole(std::string_view key, std::int64_t value) {
    lead(key);
    fmt::format_to(std::back_inserter(out_), "{}", value);
  }
  void boolean(std::string_view key, bool value) {
    lead(key);
    out_ += value ? "true" : "false";
  }
  void null(std::string_view key) {
    lead(key);
    out_ += "null";
  }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  void lead(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    if (!key.empty()) fmt::format_to(std::back_inserter(out_), "\"{}\":", key);
  }
  std::string out_;
  bool first_ = true;
};

void count(JsonText& json, std::string_view key, std::uint64_t value) {
  json.whole(key, static_cast<std::int64_t>(value));
}

void side(JsonText& json, std::string_view key, const ComparisonSide& facts, const StringTable& texts) {
  json.open('{', key);
  json.text("label", facts.label);
  json.text("file", facts.file);
  json.whole("pid", facts.pid);
  count(json, "cycles", facts.cycle_us.size());
  json.number("mean_cycle_us", facts.mean_cycle_us);
  json.open('[', "cycle_us");
  for (const double us : facts.cycle_us) json.number({}, us);
  json.close(']');
  json.open('[', "anchors");
  for (const StringId anchor : facts.anchors) json.text({}, texts[anchor]);
  json.close(']');
  count(json, "rows", facts.rows);
  count(json, "rows_without_metric", facts.rows_no_metric);
  count(json, "rows_without_function", facts.rows_no_name);
  json.close('}');
}

void table_row(JsonText& json, const SuspicionRow& row, const StringTable& texts) {
  json.open('{');
  json.text("function", texts[row.function]);
  json.text("metric", texts[row.metric]);
  json.text("device", texts[row.device]);
  json.number("suspicion_score", row.score);
  json.number("beta_baseline_pct", row.beta[0]);
  json.number("beta_candidate_pct", row.beta[1]);
  json.number("beta_delta_pct", row.delta_beta);
  json.number("beta_z", row.z_beta);
  json.number("beta_p", row.p_beta.value_or(kNoNumber));
  json.number("beta_u_p", row.u_beta.value_or(kNoNumber));
  json.number("mu_baseline", row.mu[0]);
  json.number("mu_candidate", row.mu[1]);
  json.number("mu_delta", row.delta_mu);
  json.number("mu_z", row.z_mu);
  json.number("log_mu_z", row.z_log_mu);
  json.number("mu_p", row.p_mu.value_or(kNoNumber));
  json.number("mu_u_p", row.u_mu.value_or(kNoNumber));
  if (row.mark != RowMark::none) json.text("mark", to_string(row.mark));
  json.close('}');
}

void comparison_object(JsonText& json, const Comparison& comparison) {
  const StringTable& texts = comparison.texts;
  json.open('{');
  json.text("identifier", comparison.identifier);
  json.text("pairing", comparison.pairing == Pairing::strict ? "strict" : "cross");
  json.text("base_name", comparison.base_name);
  side(json, "baseline", comparison.sides[0], texts);
  side(json, "candidate", comparison.sides[1], texts);
  json.boolean("anchors_differ", comparison.anchors_differ);
  json.open('[', "findings");
  for (const SuspicionFinding& finding : comparison.findings) {
    json.open('{');
    count(json, "row", finding.row);
    json.open('[', "resource_rows");
    for (const std::size_t i : finding.resources) count(json, {}, i);
    json.close(']');
    json.close('}');
  }
  json.close(']');
  json.open('[', "functions_without_metric");
  for (const UnscoredFunction& entry : comparison.unscored) {
    json.open('{');
    json.text("function", texts[entry.function]);
    json.text("device", texts[entry.device]);
    json.number("beta_baseline_pct", entry.beta[0]);
    json.number("beta_candidate_pct", entry.beta[1]);
    json.close('}');
  }
  json.close(']');
  json.open('[', "rows");
  for (const SuspicionRow& row : comparison.rows) table_row(json, row, texts);
  json.close(']');
  json.close('}');
}

void cycle_time_object(JsonText& json, const CycleTimeOutcome& o) {
  json.open('{');
  json.text("phase", phase_name(o.phase));
  json.text("outcome", to_string(o.outcome));
  json.number("change", o.change);
  json.number("low", o.low);
  json.number("high", o.high);
  json.number("smallest_seen", o.smallest_seen);
  json.number("tolerance", o.tolerance);
  json.number("assumed_spread_between_recordings", o.between);
  for (const std::size_t side : {0U, 1U}) {
    const std::string name = side == 0 ? "baseline" : "candidate";
    count(json, name + "_cycles", o.cycles[side]);
    json.number(name + "_effective_cycles", o.effective[side]);
  }
  json.close('}');
}

void input_object(JsonText& json, const InputReport& input) {
  json.open('{');
  json.text("file", input.file);
  count(json, "rows", input.rows);
  count(json, "bad_rows", input.bad_rows);
  count(json, "bad_cells", input.bad_cells);
  json.open('[', "damage");
  for (const model::InputDamage& damage : input.first) {
    json.open('{');
    count(json, "line", damage.line);
    json.text("what", damage.what);
    json.text("remedy", damage.remedy);
    json.close('}');
  }
  json.close(']');
  json.open('[', "unknown_columns");
  for (const std::string& column : input.unknown_columns) json.text({}, column);
  json.close(']');
  json.close('}');
}

void host_changes(JsonText& json, std::string_view key, const std::vector<HostChange>& changes) {
  json.open('[', key);
  for (const HostChange& change : changes) {
    json.open('{');
    json.text("what", change.what);
    json.text("unit", change.unit);
    const auto value = [&](std::string_view name, const std::optional<double>& number) {
      if (number)
        json.number(name, *number);
      else
        json.null(name);
    };
    value("baseline", change.value[0]);
    value("candidate", change.value[1]);
    json.close('}');
  }
  json.close(']');
}

}  // namespace

std::string comparisons_json(const ComparisonSet& set) {
  JsonText json;
  json.open('{');
  json.text("score", "suspicion");
  if (set.outcome) json.text("outcome", to_string(*set.outcome));
  if (!set.cycle_times.empty()) {
    json.open('[', "cycle_times");
    for (const CycleTimeOutcome& o : set.cycle_times) cycle_time_object(json, o);
    json.close(']');
  }
  if (set.host) {
    json.open('{', "host");
    host_changes(json, "states", set.host->states);
    host_changes(json, "counters", set.host->counters);
    json.close('}');
  }
  json.open('[', "comparisons");
  for (const Comparison& comparison : set.comparisons) comparison_object(json, comparison);
  json.close(']');
  json.open('[', "not_compared");
  for (const Unpaired& entry : set.unpaired) {
    json.open('{');
    json.text("file", entry.file);
    entry.pid ? json.whole("pid", *entry.pid) : json.null("pid");
    json.text("why", entry.why);
    json.close('}');
  }
  json.close(']');
  json.open('[', "inputs");
  for (const InputReport& input : set.inputs) input_object(json, input);
  json.close(']');
  json.open('[', "notes");
  for (const std::string& note : set.notes) json.text({}, note);
  json.close(']');
  json.close('}');
  return json.take();
}

}  // namespace culprit::deepdive
