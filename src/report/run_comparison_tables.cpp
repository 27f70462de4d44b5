#include "report/run_comparison_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/units.h"
#include "model/table_rows.h"
#include "report/collected_report.h"
#include "report/host_report.h"
#include "report/whole_run_report.h"
#include "report/work_comparison.h"
#include "stats/quantile.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::FunctionFinding;
using model::FunctionStatus;
using model::kSideNames;
using model::number_cell;
using model::Outcome;
using model::RunComparison;
using model::Table;
using model::whole_cell;

constexpr double kMuchInCommon = 0.2;          ///< of logarithms
constexpr std::size_t kMostFactsOfUnlike = 5;  ///< rows about runs that are not compared

bool waits(const RunComparison& comparison, const FunctionFinding& finding) {
  return model::is_wait(comparison.texts[finding.kind]);
}

bool is_listed(const RunComparison& comparison, const FunctionFinding& finding) {
  return model::has_changed(finding) && !waits(comparison, finding) && finding.moved_inside == 0;
}

/// Process of a finding as people know it, when there are several.
std::string process_name(const RunComparison& comparison, const FunctionFinding& finding) {
  const model::ProcessPair& pair = comparison.processes[finding.process];
  const auto pid = [](const std::optional<std::int64_t>& p) { return p ? std::to_string(*p) : std::string("none"); };
  return pair.pid[0] == pair.pid[1] ? pid(pair.pid[0]) : fmt::format("{}, {}", pid(pair.pid[0]), pid(pair.pid[1]));
}

bool has_several_processes(const RunComparison& comparison) {
  return std::ranges::any_of(comparison.functions,
                             [&](const FunctionFinding& f) { return f.process != comparison.functions[0].process; });
}

/// Of the functions that are listed.
std::set<std::string_view> listed_devices(const RunComparison& comparison) {
  std::set<std::string_view> devices;
  for (const FunctionFinding& f : comparison.functions)
    if (is_listed(comparison, f)) devices.insert(comparison.texts[f.device]);
  return devices;
}

/// Beside functions of devices those of the host could be taken for work of these.
std::string whose_functions(const RunComparison& comparison, const std::set<std::string_view>& devices) {
  constexpr std::string_view kHost = "Host";
  const bool host_alone = devices.size() == 1 && devices.contains(kHost);
  const bool any_device = std::ranges::any_of(
      comparison.functions, [&](const FunctionFinding& f) { return comparison.texts[f.device] != kHost; });
  return host_alone && any_device ? "Functions of the host" : "Functions";
}

/// In whole percent.
Cell percent_of_change(const RunComparison& comparison, const FunctionFinding& finding) {
  constexpr double kNothing = 0.005;
  const double share = share_of_change(comparison, finding);
  return number_cell(std::abs(share) < kNothing ? 0 : share);
}

std::string per_call(const FunctionFinding& finding) {
  if (finding.status == FunctionStatus::added) return "new";
  if (finding.status == FunctionStatus::gone) return "gone";
  return std::isfinite(finding.work_ratio) ? fmt::format("x{:.2f}", finding.work_ratio) : "";
}

std::string calls(const FunctionFinding& finding) {
  const auto& [before, after] = finding.calls;
  if (finding.status == FunctionStatus::added) return fmt::format("{:.1f}", after);
  if (finding.status == FunctionStatus::gone || std::abs(after - before) < 0.05) return fmt::format("{:.1f}", before);
  return fmt::format("{:.1f} -> {:.1f}", before, after);
}

/// Per call, of the middle one of the functions that both sides have, where all are on the host; 1: too few.
double usual_ratio(const RunComparison& comparison) {
  constexpr std::size_t kFewest = 10;
  std::vector<double> ratios;
  for (const FunctionFinding& f : comparison.functions) {
    if (comparison.texts[f.device] != "Host") return 1;
    if (std::isfinite(f.work_ratio) && f.work_ratio > 0) ratios.push_back(f.work_ratio);
  }
  return ratios.size() < kFewest ? 1 : stats::median(std::move(ratios));
}

/// Where cycles begin, and why there.
std::string beginnings_of(const model::ComparedSide& base, const model::ComparedSide& candidate) {
  if (base.anchor == candidate.anchor && base.reason == candidate.reason)
    return fmt::format("'{}' on both sides: {}", base.anchor, base.reason);
  return fmt::format("'{}' (baseline: {}), '{}' (candidate: {})", base.anchor, base.reason, candidate.anchor,
                     candidate.reason);
}

/// By what functions were decided to have changed: "their time 2, calls of one side alone 1"; empty: none has.
std::string bases_text(const RunComparison& comparison) {
  constexpr std::array kWhat = {std::pair(model::RestsOn::time, "their time"),
                                std::pair(model::RestsOn::against_others, "their time against all others"),
                                std::pair(model::RestsOn::calls, "calls of one side alone"),
                                std::pair(model::RestsOn::per_call, "how long a call takes"),
                                std::pair(model::RestsOn::recordings, "the recordings of each side")};
  std::string text;
  for (const auto& [basis, what] : kWhat)
    if (const auto count = std::ranges::count_if(
            comparison.functions,
            [&](const FunctionFinding& f) { return model::has_changed(f) && f.rests_on == basis; });
        count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, count);
  return text;
}

std::string functions_note(const RunComparison& comparison) {
  const auto count = [&](FunctionStatus status) {
    return std::ranges::count(comparison.functions, status, &FunctionFinding::status);
  };
  const auto waiting = std::ranges::count_if(
      comparison.functions, [&](const FunctionFinding& f) { return model::has_changed(f) && waits(comparison, f); });
  std::string note = fmt::format("Functions that take the same time within 5 %: {}; not decided: {}",
                                 count(FunctionStatus::same), count(FunctionStatus::unknown));
  if (waiting > 0) note += fmt::format("; calls that wait and changed: {}", waiting);
  if (const std::string bases = bases_text(comparison); !bases.empty()) note += "; decided to have changed by " + bases;
  note += ".";
  if (const double ratio = usual_ratio(comparison); std::abs(std::log(ratio)) > kMuchInCommon)
    note += fmt::format(
        " Per call the middle one of all took x{:.2f}: what they share (clock, neighbours, build) is listed of none.",
        ratio);
  return note;
}

/// One line for each of the parents inside of which most work moved, the most first.
std::vector<std::string> cost_shift_notes(const RunComparison& comparison) {
  constexpr std::size_t kMostParents = 3;
  constexpr std::size_t kMostNamed = 4;
  struct Moved {
    double all = 0;       ///< ns per cycle
    double together = 0;  ///< what remains of it
    std::vector<const FunctionFinding*> functions;
  };
  using Place = std::tuple<model::Phase, std::uint32_t, StringId, StringId>;
  std::map<Place, std::size_t> rows;
  std::vector<Moved> parents;
  for (const FunctionFinding& f : comparison.functions) {
    if (f.moved_inside == 0) continue;
    const auto [row, is_new] = rows.try_emplace({f.phase, f.process, f.device, f.moved_inside}, parents.size());
    if (is_new) parents.emplace_back();
    Moved& moved = parents[row->second];
    moved.all += std::abs(f.impact_ns);
    moved.together += f.impact_ns;
    moved.functions.push_back(&f);
  }
  std::ranges::stable_sort(parents, std::greater(), &Moved::all);
  const auto change = [](double ns) { return fmt::format("{}{}", ns < 0 ? "-" : "+", format_duration(std::abs(ns))); };
  std::vector<std::string> notes;
  for (const Moved& moved : parents) {
    if (notes.size() == kMostParents) {
      notes.push_back(
          fmt::format("Work moved inside {} more; --json shows them (moved_inside).", parents.size() - kMostParents));
      break;
    }
    const FunctionFinding& first = *moved.functions.front();
    std::vector<std::string> parts;
    for (const FunctionFinding* f : moved.functions | std::views::take(kMostNamed))
      parts.push_back(fmt::format("{} {}", comparison.texts[f->function], change(f->impact_ns)));
    std::string place(phase_name(first.phase));
    if (const std::string_view device = comparison.texts[first.device]; device != "Host")
      place += fmt::format(", {}", device);
    if (has_several_processes(comparison)) place += fmt::format(", process {}", process_name(comparison, first));
    notes.push_back(fmt::format("Work moved inside {} ({}): {}{}; together {} per cycle, so none of them is listed",
                                comparison.texts[first.moved_inside], place, fmt::join(parts, ", "),
                                moved.functions.size() > kMostNamed ? " and others" : "", change(moved.together)));
  }
  return notes;
}

Table environment_table(const RunComparison& comparison, std::size_t most) {
  using model::EnvironmentChange;
  Table table = model::make_table<EnvironmentChange>(
      "Environment that differs", "environment",
      {{{"Fact", "key", ColumnType::name}, &EnvironmentChange::key},
       {{"Baseline", "baseline"}, [](const EnvironmentChange& change) { return change.value[0]; }},
       {{"Candidate", "candidate"}, [](const EnvironmentChange& change) { return change.value[1]; }}},
      comparison.environment, most);
  const std::size_t shown = table.rows.size();
  if (shown < comparison.environment.size())
    table.notes.push_back(
        fmt::format("{} more facts differ: --json shows them.", comparison.environment.size() - shown));
  return table;
}

Table resource_table(const RunComparison& comparison) {
  using model::ResourceChange;
  const bool ranks = model::count_ranks(comparison.processes) > 1;
  const auto side = [](std::size_t i) {
    return
        [i](const ResourceChange& r) { return r.value[i] ? Cell(readable(*r.value[i], unit_name(r.unit))) : Cell(); };
  };
  Table table = model::make_table<ResourceChange>(
      "Resources of devices that moved", "resources",
      {{{"Resource", "metric", ColumnType::name}, &ResourceChange::metric},
       {{"Device", "device"},
        [=](const ResourceChange& r) { return ranks ? fmt::format("{} of rank {}", r.device, r.rank) : r.device; }},
       {{"Baseline", "baseline"}, side(0)},
       {{"Candidate", "candidate"}, side(1)},
       {{"Ratio", "ratio", ColumnType::number, 2},
        [](const ResourceChange& r) {
          const auto& [before, after] = r.value;
          return before && after && *before > 0 ? Cell(*after / *before) : Cell();
        }}},
      comparison.resources);
  if (comparison.resources_alike > 0)
    table.notes.push_back(fmt::format("{} more differ by less than 10 %.", comparison.resources_alike));
  return table;
}

}  // namespace

std::string earlier_text(double between, std::size_t recordings) {
  return fmt::format(" Measured: {} earlier recordings of the same differ by {:.2g} % (standard deviation).",
                     recordings, between * kPercent);
}

double share_of_change(const RunComparison& comparison, const FunctionFinding& finding) {
  const auto cycle = std::ranges::find(comparison.cycle_times, finding.phase, &model::CycleTimeOutcome::phase);
  if (cycle == comparison.cycle_times.end() ||
      (cycle->outcome != Outcome::regression && cycle->outcome != Outcome::improvement))
    return model::kNoNumber;
  return finding.impact_ns / (cycle->time_ns[1] - cycle->time_ns[0]);
}

std::string_view what_would_measure(bool measured) {
  return measured ? "Recordings of the two sides in turns would need no such assumption."
                  : "Three recordings of each side, taken in turns, or --history would measure it.";
}

std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, 5> kNames = {"inconclusive", "regression", "improvement", "no_change",
                                                      "not_comparable"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string_view to_string(FunctionStatus status) {
  constexpr std::array<std::string_view, 5> kNames = {"unknown", "same", "changed", "new", "gone"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view to_string(model::RestsOn basis) {
  constexpr std::array<std::string_view, 5> kNames = {"time", "against_others", "calls", "recordings", "per_call"};
  return kNames.at(static_cast<std::size_t>(basis));
}

std::string_view to_string(model::Comparable level) {
  constexpr std::array<std::string_view, 3> kNames = {"comparable", "partly", "not_comparable"};
  return kNames[static_cast<std::size_t>(level)];
}

std::vector<std::string> note_lines(const RunComparison& comparison) {
  std::vector<std::string> notes = comparison.notes;
  if (comparison.same_recording) return notes;
  const auto listed = [&](const FunctionFinding& f) { return is_listed(comparison, f); };
  std::vector<std::string> moved = cost_shift_notes(comparison);
  if (!comparison.functions.empty() && std::ranges::none_of(comparison.functions, listed))
    notes.push_back((moved.empty() ? "No function is shown to have changed. "
                                   : "No function is shown to have changed but those between which work moved. ") +
                    functions_note(comparison));
  std::ranges::move(moved, std::back_inserter(notes));
  if (comparison.outcome != Outcome::not_comparable) {
    const auto& reasons = comparison.comparability.reasons;
    notes.insert(notes.end(), reasons.begin(), reasons.end());
    if (std::ranges::any_of(comparison.cycle_times, model::is_judged))
      for (const model::CycleTimeOutcome& o : comparison.cycle_times)
        if (!model::is_judged(o)) notes.push_back(other_work_text(o));
    for (const model::ProcessPair& pair : comparison.processes)
      for (const std::size_t s : {0U, 1U})
        if (pair.pid[s] && !pair.pid[1 - s] && (*pair.pid[s] >= 0 || !comparison.host))
          notes.push_back(fmt::format("Not compared: process {} of the {}: the {} has no process of this role",
                                      *pair.pid[s], kSideNames[s], kSideNames[1 - s]));
    if (!comparison.work && !comparison.sides[0].anchor.empty())
      notes.push_back(fmt::format("Cycles begin at {}", beginnings_of(comparison.sides[0], comparison.sides[1])));
  }
  constexpr std::string_view kFault = "inject.";
  for (const model::EnvironmentChange& change : comparison.environment)
    for (const std::size_t s : {0U, 1U})
      if (change.key.starts_with(kFault) && !change.value[s].empty())
        notes.push_back(fmt::format("The {} was recorded while 'culprit inject {}' was at work", kSideNames[s],
                                    change.key.substr(kFault.size())));
  for (const std::size_t s : {0U, 1U}) {
    const model::ComparedSide& side = comparison.sides[s];
    if (side.recordings > 1)
      notes.push_back(fmt::format("{} recordings of the {} are pooled", side.recordings, kSideNames[s]));
    if (side.losses.empty()) continue;
    std::vector<std::string> counts;
    counts.reserve(side.losses.size());
    for (const model::LossCount& loss : side.losses) counts.push_back(fmt::format("{} {}", loss.count, loss.reason));
    notes.push_back(
        fmt::format("Losses in the {}: {}; {} says what and why", kSideNames[s], fmt::join(counts, ", "),
                    side.files.size() != 1
                        ? fmt::format("'culprit info --show losses' of {}",
                                      side.files.empty() ? "recordings that are kept (--keep)" : "each of its files")
                        : fmt::format("'culprit info --show losses {}'", side.files.front())));
  }
  return notes;
}

std::vector<Table> changed_functions(const RunComparison& comparison, std::size_t most_rows) {
  std::vector<Table> tables;
  const bool processes = has_several_processes(comparison);
  const std::set<std::string_view> devices = listed_devices(comparison);
  const std::string whose = whose_functions(comparison, devices);
  for (const model::CycleTimeOutcome& o : comparison.cycle_times) {
    const auto is_row = [&](const FunctionFinding& f) { return f.phase == o.phase && is_listed(comparison, f); };
    const bool renamed =
        std::ranges::any_of(comparison.functions, [&](const FunctionFinding& f) { return f.was != 0 && is_row(f); });
    Table table = model::make_table<FunctionFinding>(
        fmt::format("{} that changed, per cycle ({})", whose, phase_name(o.phase)),
        fmt::format("functions_{}", phase_name(o.phase)),
        {{{"Function", "function", ColumnType::name},
          [&](const FunctionFinding& f) { return comparison.texts[f.function]; }},
         {{"In the baseline", "was", ColumnType::name},
          [&](const FunctionFinding& f) { return comparison.texts[f.was]; },
          model::present_if(renamed)},
         {{"Process", "process"},
          [&](const FunctionFinding& f) { return process_name(comparison, f); },
          model::present_if(processes)},
         {{"Device", "device"},
          [&](const FunctionFinding& f) { return comparison.texts[f.device]; },
          model::present_if(devices.size() > 1)},
         {{"Baseline", "baseline_ns", ColumnType::time},
          [](const FunctionFinding& f) { return whole_cell(f.time_ns[0]); }},
         {{"Candidate", "candidate_ns", ColumnType::time},
          [](const FunctionFinding& f) { return whole_cell(f.time_ns[1]); }},
         {{"Change", "impact_ns", ColumnType::time}, [](const FunctionFinding& f) { return whole_cell(f.impact_ns); }},
         {{"Of it", "share", ColumnType::percent, 0, true},
          [&](const FunctionFinding& f) { return percent_of_change(comparison, f); },
          model::Presence::if_known},
         {{"Calls", "calls"}, calls},
         {{"Per call", "per_call"}, per_call}},
        comparison.functions | std::views::filter(is_row), most_rows);
    const auto left_out =
        static_cast<std::size_t>(std::ranges::count_if(comparison.functions, is_row)) - table.rows.size();
    if (left_out > 0) table.notes.push_back(fmt::format("{} more changed: --json shows them.", left_out));
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  if (!tables.empty()) tables.back().notes.push_back(functions_note(comparison));
  return tables;
}

Table all_functions(const RunComparison& comparison) {
  using F = FunctionFinding;
  const auto text = [&](StringId F::*id) { return [&comparison, id](const F& f) { return comparison.texts[f.*id]; }; };
  const auto number = [](double F::*value) { return [value](const F& f) { return number_cell(f.*value); }; };
  const auto side = [](std::array<double, 2> F::*values, std::size_t i) {
    return [=](const F& f) { return number_cell((f.*values)[i]); };
  };
  const auto pair = [&](const F& f) -> const model::ProcessPair& { return comparison.processes[f.process]; };
  return model::make_table<F>(
      "Functions", "functions",
      {{{"Phase", "phase"}, [](const F& f) { return phase_name(f.phase); }},
       {{"Rank", "rank", ColumnType::count}, [=](const F& f) { return model::known_cell(pair(f).rank); }},
       {{"Baseline process", "baseline_pid", ColumnType::count}, [=](const F& f) { return pair(f).pid[0]; }},
       {{"Candidate process", "candidate_pid", ColumnType::count}, [=](const F& f) { return pair(f).pid[1]; }},
       {{"Function", "function", ColumnType::name}, text(&F::function)},
       {{"Short name", "short_name", ColumnType::name}, text(&F::short_name)},
       {{"In the baseline", "was", ColumnType::name}, text(&F::was)},
       {{"Kind", "kind"}, text(&F::kind)},
       {{"Device", "device"}, text(&F::device)},
       {{"Status", "status"}, [](const F& f) { return to_string(f.status); }},
       {{"Rests on", "rests_on"}, [](const F& f) { return to_string(f.rests_on); }},
       {{"Baseline", "baseline_ns_per_cycle", ColumnType::number}, side(&F::time_ns, 0)},
       {{"Candidate", "candidate_ns_per_cycle", ColumnType::number}, side(&F::time_ns, 1)},
       {{"Impact", "impact_ns_per_cycle", ColumnType::number}, number(&F::impact_ns)},
       {{"Low", "ci_low_ns", ColumnType::number}, number(&F::low_ns)},
       {{"High", "ci_high_ns", ColumnType::number}, number(&F::high_ns)},
       {{"Share", "share", ColumnType::number},
        [&](const F& f) { return number_cell(share_of_change(comparison, f)); }},
       {{"Baseline calls", "baseline_calls_per_cycle", ColumnType::number}, side(&F::calls, 0)},
       {{"Candidate calls", "candidate_calls_per_cycle", ColumnType::number}, side(&F::calls, 1)},
       {{"Baseline per call", "baseline_ns_per_call", ColumnType::number}, side(&F::per_call_ns, 0)},
       {{"Candidate per call", "candidate_ns_per_call", ColumnType::number}, side(&F::per_call_ns, 1)},
       {{"Work ratio", "work_ratio", ColumnType::number}, number(&F::work_ratio)},
       {{"q", "q", ColumnType::number}, number(&F::q)},
       {{"Parent", "parent", ColumnType::name}, text(&F::parent)},
       {{"Moved inside", "moved_inside", ColumnType::name}, text(&F::moved_inside)}},
      comparison.functions);
}

std::vector<Table> evidence_tables(const RunComparison& comparison, std::size_t most_facts) {
  std::vector<Table> tables;
  if (comparison.outcome == Outcome::not_comparable) {
    // What differs between unlike runs is no answer: only what may tell why they are unlike.
    if (!comparison.resources.empty()) tables.push_back(resource_table(comparison));
    for (Table& table : whole_run_tables(comparison)) tables.push_back(std::move(table));
    if (!comparison.environment.empty()) tables.push_back(environment_table(comparison, kMostFactsOfUnlike));
    return tables;
  }
  if (comparison.work) tables = work_comparison_tables(*comparison.work, most_facts);
  if (comparison.host) {
    model::HostChanges host = *comparison.host;
    if (comparison.work) host.states.clear();  // per unit they say more
    for (Table& table : host_tables(host, true)) tables.push_back(std::move(table));
  }
  for (Table& table : collected_tables(comparison, most_facts)) tables.push_back(std::move(table));
  if (!comparison.resources.empty()) tables.push_back(resource_table(comparison));
  for (Table& table : whole_run_tables(comparison)) tables.push_back(std::move(table));
  if (!comparison.environment.empty()) tables.push_back(environment_table(comparison, most_facts));
  return tables;
}

}  // namespace culprit::report
