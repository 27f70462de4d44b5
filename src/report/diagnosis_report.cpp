#include "report/diagnosis_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json_writer.h"
#include "core/units.h"
#include "model/table_rows.h"
#include "report/run_comparison_tables.h"
#include "report/verdict_report.h"

namespace culprit::report {

namespace {

using model::PhaseTime;
using model::RunDiagnosis;
using model::StepPart;
using model::Verdict;

std::string head_of(const Verdict& verdict, bool per_second) {
  std::string text = verdict.cause;
  if (!verdict.detail.empty()) text += fmt::format(" ({})", verdict.detail);
  if (!verdict.where.empty()) text += fmt::format(" in {}", verdict.where);
  if (verdict.state == model::VerdictState::latent) text += ", latent: whether steps are longer by it is not known";
  if (std::isfinite(verdict.impact_ns))
    text += fmt::format(": {} of every {}", format_duration(verdict.impact_ns), per_second ? "second" : "step");
  if (std::isfinite(verdict.share)) text += fmt::format(" ({:.0f} %)", verdict.share * kPercent);
  return text + fmt::format(", confidence {:.0f} %", verdict.confidence * kPercent);
}

void add(std::vector<std::string>& lines, VerdictText text) {
  lines.push_back(std::move(text.head));
  for (const std::string& line : text.lines) lines.push_back("  " + line);
}

std::string change_text(const model::ChangePoint& change) {
  std::string text = fmt::format("From step {} on ({} behind the first) it is another run: steps take", change.cycle,
                                 format_duration(static_cast<double>(change.at)));
  bool first = true;
  for (const model::CycleTimeOutcome& outcome : change.comparison.cycle_times) {
    if (!model::is_judged(outcome)) continue;
    text += fmt::format("{} {:+.1f} % (", first ? "" : ",", outcome.change * kPercent);
    if (std::isfinite(outcome.low))
      text += fmt::format("95 % interval {:+.1f} % to {:+.1f} %; ", outcome.low * kPercent, outcome.high * kPercent);
    text += fmt::format("{})", model::phase_name(outcome.phase));
    first = false;
  }
  return text;
}

}  // namespace

model::Table step_parts_table(const RunDiagnosis& diagnosis) {
  using model::ColumnType;
  return model::make_table<StepPart>(
      diagnosis.per_second ? "Where a second goes" : "Where a step goes", "step_parts",
      {{{"Where", "where", ColumnType::name}, &StepPart::where},
       {{"What", "what", ColumnType::text}, &StepPart::what},
       {{"Time", "time_ns", ColumnType::time},
        [](const StepPart& part) { return model::Cell(std::int64_t{std::llround(part.time_ns)}); }},
       {{"Share", "share", ColumnType::percent}, &StepPart::share}},
      diagnosis.parts);
}

model::Table phases_table(const RunDiagnosis& diagnosis) {
  using model::Cell;
  using model::ColumnType;
  const auto stands_out = [](const PhaseTime& phase, double share) {
    return phase.where.empty() ? Cell() : Cell(share);
  };
  model::Table table = model::make_table<PhaseTime>(
      "Phases against each other", "phases",
      {{{"Phase", "phase"}, [](const PhaseTime& phase) { return Cell(std::string(model::phase_name(phase.phase))); }},
       {{"Steps", "steps", ColumnType::count}, &PhaseTime::steps},
       {{"Mean step", "step_ns", ColumnType::time},
        [](const PhaseTime& phase) { return Cell(std::int64_t{std::llround(phase.step_ns)}); }},
       {{"Of the time", "share", ColumnType::percent}, &PhaseTime::share},
       {{"Where", "where"}, [](const PhaseTime& phase) { return model::text_cell(phase.where); }},
       {{"What", "what"}, [](const PhaseTime& phase) { return model::text_cell(phase.what); }},
       {{"Of a step", "part_share", ColumnType::percent},
        [&](const PhaseTime& phase) { return stands_out(phase, phase.part_share); }},
       {{"Elsewhere", "others_share", ColumnType::percent},
        [&](const PhaseTime& phase) { return stands_out(phase, phase.others_share); }}},
      diagnosis.phases);
  if (std::ranges::any_of(diagnosis.phases, [](const PhaseTime& phase) { return !phase.where.empty(); }))
    table.notes.emplace_back(
        "Where and What: the part that has a larger share of a step there than elsewhere, in the other phases, by "
        "most");
  return table;
}

std::vector<std::string> diagnosis_lines(const RunDiagnosis& diagnosis) {
  std::vector<std::string> lines;
  if (!diagnosis.idle.empty())
    lines.push_back("No steps: " + diagnosis.idle);
  else if (diagnosis.per_second)
    lines.emplace_back("The program marks no steps; times are per second");
  else if (!(diagnosis.step_ns > 0))
    lines.push_back(fmt::format("No whole step: {} cycle{} by {}", diagnosis.cycles, diagnosis.cycles == 1 ? "" : "s",
                                diagnosis.anchor));
  else
    lines.push_back(fmt::format("{} steps of {} in the mean, by {}", diagnosis.steps,
                                format_duration(diagnosis.step_ns), diagnosis.anchor));
  for (const Verdict& verdict : diagnosis.verdicts) {
    VerdictText text = verdict_text(verdict);
    text.head = head_of(verdict, diagnosis.per_second);
    add(lines, std::move(text));
  }
  if (diagnosis.change) {
    lines.push_back(change_text(*diagnosis.change));
    for (VerdictText& text : verdict_texts(diagnosis.change->comparison, {"steps before", "steps from it on"}))
      add(lines, std::move(text));
  }
  if (diagnosis.verdicts.empty() && !diagnosis.change)
    lines.emplace_back("Nothing is found by this run alone; culprit diff holds it against another one");
  return lines;
}

void write_diagnosis(JsonWriter& json, const RunDiagnosis& diagnosis) {
  json.member("cycles", diagnosis.cycles);
  json.member("steps", diagnosis.steps);
  json.member("anchor", diagnosis.anchor);
  json.member("per_second", diagnosis.per_second);
  json.member("step_ns", diagnosis.step_ns);
  json.member("idle", diagnosis.idle);
  model::write_verdicts(json, diagnosis.verdicts);
  if (!diagnosis.change) {
    json.key("change");
    json.null();
    return;
  }
  const model::ChangePoint& change = *diagnosis.change;
  json.begin_object("change");
  json.member("cycle", change.cycle);
  json.member("at_ns", change.at);
  json.member("outcome", to_string(change.comparison.outcome));
  json.begin_array("cycle_time");
  for (const model::CycleTimeOutcome& outcome : change.comparison.cycle_times) {
    json.begin_object(JsonForm::line);
    json.member("phase", model::phase_name(outcome.phase));
    json.member("outcome", to_string(outcome.outcome));
    json.member("baseline_ns", outcome.time_ns[0]);
    json.member("candidate_ns", outcome.time_ns[1]);
    json.member("ratio", 1 + outcome.change);
    json.member("ci_low", 1 + outcome.low);
    json.member("ci_high", 1 + outcome.high);
    json.end_object();
  }
  json.end_array();
  model::write_verdicts(json, change.comparison.verdicts);
  json.end_object();
}

}  // namespace culprit::report
