// The public form of a comparison: the stage's result with its names written out.
#include <culprit/compare.h>

#include <utility>

#include "library/compare.h"
#include "model/cycles.h"
#include "report/run_comparison.h"

namespace culprit {

struct Comparison::Data {
  model::RunComparison whole;
};

namespace {

std::string unit_of(model::Unit unit) { return std::string(model::unit_name(unit)); }

ComparedSide side_of(const model::ComparedSide& side) {
  return {side.files,  side.recordings,   side.anchor, side.reason, side.period_confidence,
          side.cycles, side.median_period};
}

Finding finding_of(const model::RunComparison& whole, const model::FunctionFinding& f) {
  const auto text = [&](StringId id) { return std::string(whole.texts[id]); };
  Finding out;
  out.phase = model::phase_name(f.phase);
  out.function = text(f.function);
  out.was = text(f.was);
  out.short_name = text(f.short_name);
  out.kind = text(f.kind);
  out.device = text(f.device);
  out.rank = whole.processes[f.process].rank;
  out.status = f.status;
  out.rests_on = f.rests_on;
  out.time_ns = f.time_ns;
  out.impact_ns = f.impact_ns;
  out.low_ns = f.low_ns;
  out.high_ns = f.high_ns;
  out.calls = f.calls;
  out.work_ratio = f.work_ratio;
  out.q = f.q;
  out.parent = text(f.parent);
  out.moved_inside = text(f.moved_inside);
  return out;
}

}  // namespace

Comparison library::comparison_of(model::RunComparison compared) {
  auto data = std::make_shared<const Comparison::Data>(Comparison::Data{std::move(compared)});
  const model::RunComparison& whole = data->whole;
  Comparison out;
  out.outcome = whole.outcome;
  out.why = whole.why;
  out.same_recording = whole.same_recording;
  out.comparability = {whole.comparability.level, whole.comparability.reasons, whole.comparability.remedy, {}};
  for (const model::Difference& d : whole.comparability.differences)
    out.comparability.differences.push_back({d.what, {d.base, d.candidate}, d.blocks});
  out.sides = {side_of(whole.sides[0]), side_of(whole.sides[1])};
  for (const model::CycleTimeOutcome& t : model::all_cycle_times(whole))
    out.cycle_times.push_back({std::string(model::phase_name(t.phase)), t.outcome, t.time_ns, t.change, t.low, t.high,
                               t.smallest_seen, t.cycles, t.rank, t.these_differ});
  for (const model::FunctionFinding& f : whole.functions) out.findings.push_back(finding_of(whole, f));
  for (const model::ResourceChange& r : whole.resources)
    out.resources.push_back({r.metric, r.device, r.rank, unit_of(r.unit), r.value});
  for (const model::EnvironmentChange& e : whole.environment) out.environment.push_back({e.key, e.value, false});
  for (const model::Verdict& v : whole.verdicts)
    out.verdicts.push_back({v.cause, v.detail, to_string(v.scope), v.where, v.rank, v.side,
                            v.state == model::VerdictState::active, v.impact_ns, v.share, v.work_ratio, v.confidence,
                            v.evidence, v.against, v.next_step});
  out.assumptions = whole.assumptions;
  out.notes = whole.notes;
  out.data = std::move(data);
  return out;
}

Result<Comparison> compare_runs(std::vector<Run> baseline, std::vector<Run> candidate, const CompareOptions& options,
                                const std::vector<Run>& earlier) {
  std::vector<library::Earlier> loaded;
  for (const Run& run : earlier) loaded.emplace_back([&run] { return std::vector<Run>{run}; });
  auto compared = library::compare(std::move(baseline), std::move(candidate), options, loaded);
  if (!compared) return compared.error();
  return library::comparison_of(std::move(*compared));
}

std::string to_text(const Comparison& comparison, std::size_t most_rows) {
  return report::comparison_terminal(comparison.data->whole, most_rows);
}
std::string to_markdown(const Comparison& comparison) { return report::comparison_markdown(comparison.data->whole); }
std::string to_csv(const Comparison& comparison) { return report::comparison_csv(comparison.data->whole); }
std::string to_json(const Comparison& comparison) { return report::comparison_json(comparison.data->whole); }

}  // namespace culprit
