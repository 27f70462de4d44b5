#include "report/comparison_files.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "model/cycles.h"
#include "model/ledger.h"
#include "model/table_rows.h"
#include "report/collected_report.h"
#include "report/host_report.h"
#include "report/off_cpu_report.h"
#include "report/render.h"
#include "report/run_comparison_tables.h"

namespace culprit::report {

namespace {

using model::number_cell;
using model::RunComparison;
using model::Table;

/// Gives one side of a pair.
template <class Row, class Value>
auto side(std::array<Value, 2> Row::*values, std::size_t i) {
  return [=](const Row& row) {
    if constexpr (std::is_floating_point_v<Value>)
      return number_cell((row.*values)[i]);
    else
      return (row.*values)[i];
  };
}

template <class Row>
auto number(double Row::*value) {
  return [=](const Row& row) { return number_cell(row.*value); };
}

/// What the comparison holds as a relative change, as a ratio: as in its JSON.
template <class Row>
auto ratio(double Row::*change) {
  return [=](const Row& row) { return number_cell(1 + row.*change); };
}

Table cycle_time_table(const RunComparison& comparison) {
  using C = model::CycleTimeOutcome;
  return model::make_table<C>("Cycle time", "cycle_time",
                              {{{"Phase", "phase"}, [](const C& c) { return phase_name(c.phase); }},
                               {{"Rank", "rank"}, [](const C& c) { return model::known_cell(c.rank); }},
                               {{"Outcome", "outcome"}, [](const C& c) { return to_string(c.outcome); }},
                               {{"Baseline", "baseline_ns"}, side(&C::time_ns, 0)},
                               {{"Candidate", "candidate_ns"}, side(&C::time_ns, 1)},
                               {{"Baseline median", "baseline_median_ns"}, side(&C::median_ns, 0)},
                               {{"Candidate median", "candidate_median_ns"}, side(&C::median_ns, 1)},
                               {{"Ratio", "ratio"}, ratio(&C::change)},
                               {{"Low", "ci_low"}, ratio(&C::low)},
                               {{"High", "ci_high"}, ratio(&C::high)},
                               {{"Tolerance", "tolerance"}, &C::tolerance},
                               {{"Detectable", "detectable"}, ratio(&C::smallest_seen)},
                               {{"Baseline cycles", "baseline_n"}, side(&C::cycles, 0)},
                               {{"Candidate cycles", "candidate_n"}, side(&C::cycles, 1)},
                               {{"Baseline independent", "baseline_n_eff"}, side(&C::effective, 0)},
                               {{"Candidate independent", "candidate_n_eff"}, side(&C::effective, 1)},
                               {{"Between recordings", "between"}, &C::between}},
                              model::all_cycle_times(comparison));
}

Table waterfall_table(const RunComparison& comparison) {
  struct Line {
    const model::Waterfall* of;
    const model::WaterfallLine* line;
  };
  std::vector<Line> lines;
  for (const model::Waterfall& waterfall : comparison.waterfalls)
    for (const model::WaterfallLine& line : waterfall.lines) lines.push_back({&waterfall, &line});
  const auto of_line = [](auto give) { return [=](const Line& l) { return give(*l.line); }; };
  using W = model::WaterfallLine;
  return model::make_table<Line>("Waterfall", "waterfall",
                                 {{{"Phase", "phase"}, [](const Line& l) { return phase_name(l.of->phase); }},
                                  {{"Device", "device"}, [](const Line& l) { return model::known_cell(l.of->device); }},
                                  {{"State", "state"}, of_line([](const W& w) { return ledger_state_name(w.state); })},
                                  {{"Function", "function", model::ColumnType::name},
                                   [&](const Line& l) { return comparison.texts[l.line->function]; }},
                                  {{"Baseline", "baseline_ns_per_cycle"}, of_line(side(&W::time_ns, 0))},
                                  {{"Candidate", "candidate_ns_per_cycle"}, of_line(side(&W::time_ns, 1))},
                                  {{"Change", "change_ns"}, of_line(number(&W::change_ns))},
                                  {{"By calls", "by_calls_ns"}, of_line(number(&W::by_calls_ns))},
                                  {{"Baseline calls", "baseline_calls"}, of_line(side(&W::calls, 0))},
                                  {{"Candidate calls", "candidate_calls"}, of_line(side(&W::calls, 1))}},
                                 lines);
}

Table all_resources_table(const RunComparison& comparison) {
  using R = model::ResourceChange;
  return model::make_table<R>("Resources", "resources",
                              {{{"Resource", "metric", model::ColumnType::name}, &R::metric},
                               {{"Device", "device"}, &R::device},
                               {{"Rank", "rank"}, [](const R& r) { return model::known_cell(r.rank); }},
                               {{"Unit", "unit"}, [](const R& r) { return unit_name(r.unit); }},
                               {{"Baseline", "baseline"}, side(&R::value, 0)},
                               {{"Candidate", "candidate"}, side(&R::value, 1)}},
                              comparison.resources);
}

Table comparability_table(const RunComparison& comparison) {
  using D = model::Difference;
  return model::make_table<D>("Comparability", "comparability",
                              {{{"Fact", "fact", model::ColumnType::name}, &D::what},
                               {{"Baseline", "baseline"}, &D::base},
                               {{"Candidate", "candidate"}, &D::candidate},
                               {{"Blocks", "blocks"}, [](const D& d) { return d.blocks ? "yes" : "no"; }}},
                              comparison.comparability.differences);
}

Table environment_table(const RunComparison& comparison) {
  using E = model::EnvironmentChange;
  return model::make_table<E>("Environment that differs", "environment",
                              {{{"Fact", "key", model::ColumnType::name}, &E::key},
                               {{"Baseline", "baseline"}, side(&E::value, 0)},
                               {{"Candidate", "candidate"}, side(&E::value, 1)}},
                              comparison.environment);
}

Table loss_table(const RunComparison& comparison) {
  struct Lost {
    std::string_view side;
    const model::LossCount* loss;
  };
  std::vector<Lost> losses;
  for (std::size_t s = 0; s < 2; ++s)
    for (const model::LossCount& loss : comparison.sides[s].losses)
      losses.push_back({s == 0 ? "baseline" : "candidate", &loss});
  return model::make_table<Lost>("Data quality", "data_quality",
                                 {{{"Side", "side"}, &Lost::side},
                                  {{"Reason", "reason"}, [](const Lost& l) { return l.loss->reason; }},
                                  {{"Severity", "severity"}, [](const Lost& l) { return l.loss->severity; }},
                                  {{"Count", "count"}, [](const Lost& l) { return l.loss->count; }}},
                                 losses);
}

}  // namespace

std::vector<CsvFile> comparison_csv_files(const RunComparison& comparison) {
  std::vector<Table> tables = {cycle_time_table(comparison),    waterfall_table(comparison),
                               all_resources_table(comparison), comparability_table(comparison),
                               environment_table(comparison),   loss_table(comparison),
                               off_cpu_rows(comparison.off_cpu)};
  for (auto& more : {collected_rows(comparison), host_rows(comparison.host.value_or(model::HostChanges{}))})
    tables.insert(tables.end(), more.begin(), more.end());
  std::vector<CsvFile> files;
  for (const Table& table : tables) files.push_back({table.key, render_csv(std::span(&table, 1))});
  return files;
}

}  // namespace culprit::report
