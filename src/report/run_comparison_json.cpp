#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/json_writer.h"
#include "report/alternation_report.h"
#include "report/calls_report.h"
#include "report/collected_report.h"
#include "report/cycles_report.h"
#include "report/run_comparison.h"
#include "report/run_comparison_tables.h"
#include "report/standstill_report.h"
#include "report/whole_run_report.h"
#include "report/work_comparison.h"

namespace culprit::report {

namespace {

using model::kSideNames;
using model::RunComparison;

void write_side(JsonWriter& json, std::string_view name, const model::ComparedSide& side) {
  json.begin_object(name);
  json.member("files", side.files);
  json.member("recordings", side.recordings);
  json.member("cycles", side.cycles);
  json.member("median_period_ns", side.median_period);
  json.member("method", to_string(side.method));
  json.member("anchor", side.anchor);
  json.member("how", side.reason);
  json.member("period_confidence", side.period_confidence);
  json.end_object();
}

void write_cycle_time(JsonWriter& json, const model::CycleTimeOutcome& o) {
  json.begin_object(JsonForm::line);
  json.member("phase", phase_name(o.phase));
  json.member("rank", o.rank >= 0 ? std::optional(o.rank) : std::nullopt);
  json.member("outcome", to_string(o.outcome));
  json.member("baseline_ns", o.time_ns[0]);
  json.member("candidate_ns", o.time_ns[1]);
  json.member("median_ns", o.median_ns);
  json.member("ratio", 1 + o.change);
  json.member("ci_low", 1 + o.low);
  json.member("ci_high", 1 + o.high);
  json.member("tolerance", o.tolerance);
  json.member("detectable", 1 + o.smallest_seen);
  json.member("recordings_to_decide", o.enough);
  if (o.these_differ) {
    json.begin_object("these_differ", JsonForm::line);
    json.member("ratio", 1 + o.these_differ->change);
    json.member("ci_low", 1 + o.these_differ->low);
    json.member("ci_high", 1 + o.these_differ->high);
    json.end_object();
  }
  json.member("n", o.cycles);
  json.member("n_eff", o.effective);
  json.member("recordings", o.recordings);
  json.member("between", o.between);
  json.member("earlier", o.earlier);
  json.member("other_work", o.other_work);
  json.member("usual_work", o.usual_work);
  json.end_object();
}

void write_finding(JsonWriter& json, const RunComparison& comparison, const model::FunctionFinding& f) {
  const model::ProcessPair& pair = comparison.processes[f.process];
  json.begin_object(JsonForm::line);
  json.member("phase", phase_name(f.phase));
  json.member("rank", pair.rank);
  json.member("pid", pair.pid);
  json.member("function", comparison.texts[f.function]);
  json.member("short_name", comparison.texts[f.short_name]);
  json.member("was", comparison.texts[f.was]);
  json.member("kind", comparison.texts[f.kind]);
  json.member("device", comparison.texts[f.device]);
  json.member("status", to_string(f.status));
  json.member("rests_on", to_string(f.rests_on));
  json.member("impact_ns_per_cycle", f.impact_ns);
  json.member("ci", std::array{f.low_ns, f.high_ns});
  json.member("share", share_of_change(comparison, f));
  json.member("ns_per_cycle", f.time_ns);
  json.member("calls", f.calls);
  json.member("steady_calls", f.steady_calls);
  json.member("per_call_ns", f.per_call_ns);
  json.member("work_ratio", f.work_ratio);
  json.member("q", f.q);
  json.member("parent", comparison.texts[f.parent]);
  json.member("moved_inside", comparison.texts[f.moved_inside]);
  json.end_object();
}

void write_waterfall(JsonWriter& json, const RunComparison& comparison, const model::Waterfall& waterfall) {
  json.begin_object();
  json.member("phase", phase_name(waterfall.phase));
  json.member("device", waterfall.device);
  json.begin_array("devices", JsonForm::line);
  for (const std::set<std::int32_t>& devices : waterfall.devices) json.value(devices);
  json.end_array();
  json.member("cycles", std::array{waterfall.windows[0], waterfall.windows[1]});
  json.member("ns_per_cycle", waterfall.window_ns);
  json.begin_array("lines");
  for (const model::WaterfallLine& line : waterfall.lines) {
    json.begin_object(JsonForm::line);
    json.member("state", ledger_state_name(line.state));
    json.member("function", comparison.texts[line.function]);
    json.member("ns_per_cycle", line.time_ns);
    json.member("calls", line.calls);
    json.member("change_ns", line.change_ns);
    json.member("by_calls_ns", line.by_calls_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_host(JsonWriter& json, const model::HostChanges& host) {
  json.begin_object("host");
  json.member("per_second", host.per_second);
  if (host.steps_per_second[0] > 0 && host.steps_per_second[1] > 0)
    json.member("steps_per_second", host.steps_per_second);
  for (const auto& [name, change] :
       {std::pair(std::string_view("machine"), &host.machine), std::pair(std::string_view("memory"), &host.memory)}) {
    if (!*change) continue;
    json.begin_object(name, JsonForm::line);
    json.member("change", (*change)->change);
    json.member("low", (*change)->low);
    json.member("high", (*change)->high);
    json.end_object();
  }
  if (host.bursts) {
    json.begin_object("bursts", JsonForm::line);
    json.member("side", kSideNames[host.bursts->side]);
    json.member("of_time", host.bursts->of_time);
    json.member("of_steps", host.bursts->of_steps);
    json.member("cpus", host.bursts->cpus);
    json.member("step_ns", host.bursts->step_ns);
    json.end_object();
  }
  for (const auto& [name, changes] :
       {std::pair(std::string_view("step_thread"), &host.step), std::pair(std::string_view("beside"), &host.beside),
        std::pair(std::string_view("states"), &host.states), std::pair(std::string_view("counters"), &host.counters)}) {
    json.begin_array(name);
    for (const model::HostChange& change : *changes) {
      json.begin_object(JsonForm::line);
      json.member("what", change.what);
      json.member("unit", change.unit);
      json.member("baseline", change.value[0]);
      json.member("candidate", change.value[1]);
      json.end_object();
    }
    json.end_array();
  }
  json.begin_array("requests");
  for (const model::RequestChange& change : host.requests) {
    json.begin_object(JsonForm::line);
    json.member("what", change.what);
    json.member("count", std::array{change.count[0], change.count[1]});
    json.member("median_ns", change.median);
    json.member("p99_ns", change.p99);
    json.member("moved", change.moved);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_quality(JsonWriter& json, const RunComparison& comparison) {
  json.begin_object("data_quality");
  for (std::size_t s = 0; s < kSideNames.size(); ++s) {
    const model::ComparedSide& side = comparison.sides[s];
    json.begin_object(kSideNames[s]);
    json.member("events", side.events);
    json.member("events_lost", side.events_lost);
    json.begin_array("losses");
    for (const model::LossCount& loss : side.losses) {
      json.begin_object(JsonForm::line);
      json.member("reason", loss.reason);
      json.member("severity", loss.severity);
      json.member("count", loss.count);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string comparison_json(const RunComparison& comparison) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("outcome", to_string(comparison.outcome));
  json.member("why", comparison.why);
  json.member("same_recording", comparison.same_recording);
  if (comparison.alternation) write_alternation(json, *comparison.alternation);
  if (comparison.standstill) write_standstill(json, *comparison.standstill);
  json.begin_object("comparability");
  json.member("level", to_string(comparison.comparability.level));
  json.member("reasons", comparison.comparability.reasons);
  json.member("remedy", comparison.comparability.remedy);
  json.begin_array("differences");
  for (const model::Difference& d : comparison.comparability.differences) {
    json.begin_object(JsonForm::line);
    json.member("what", d.what);
    json.member("baseline", d.base);
    json.member("candidate", d.candidate);
    json.member("blocks", d.blocks);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  for (std::size_t s = 0; s < kSideNames.size(); ++s) write_side(json, kSideNames[s], comparison.sides[s]);
  json.begin_array("cycle_time");
  for (const model::CycleTimeOutcome& o : model::all_cycle_times(comparison)) write_cycle_time(json, o);
  json.end_array();
  json.begin_array("waterfall");
  for (const model::Waterfall& waterfall : comparison.waterfalls) write_waterfall(json, comparison, waterfall);
  json.end_array();
  model::write_verdicts(json, comparison.verdicts);
  json.begin_array("findings");
  for (const model::FunctionFinding& f : comparison.functions) write_finding(json, comparison, f);
  json.end_array();
  write_calls(json, comparison);
  write_whole_run(json, comparison);
  json.begin_array("resources");
  for (const model::ResourceChange& r : comparison.resources) {
    json.begin_object(JsonForm::line);
    json.member("metric", r.metric);
    json.member("device", r.device);
    json.member("rank", r.rank);
    json.member("unit", unit_name(r.unit));
    json.member("baseline", r.value[0]);
    json.member("candidate", r.value[1]);
    json.end_object();
  }
  json.end_array();
  if (comparison.work) write_work_comparison(json, *comparison.work);
  if (comparison.host) write_host(json, *comparison.host);
  write_collected(json, comparison);
  json.begin_array("environment_diff");
  for (const model::EnvironmentChange& change : comparison.environment) {
    json.begin_object(JsonForm::line);
    json.member("key", change.key);
    json.member("baseline", change.value[0]);
    json.member("candidate", change.value[1]);
    json.end_object();
  }
  json.end_array();
  json.begin_array("processes");
  for (const model::ProcessPair& pair : comparison.processes) {
    json.begin_object(JsonForm::line);
    json.member("rank", pair.rank);
    json.member("pid", pair.pid);
    json.end_object();
  }
  json.end_array();
  json.member("assumptions", comparison.assumptions);
  write_quality(json, comparison);
  json.member("notes", note_lines(comparison));
  json.end_object();
  json.finish();
  return out;
}

}  // namespace culprit::report
