#include "report/run_comparison_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/units.h"
#include "report/host_report.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::FunctionFinding;
using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using model::Table;

constexpr std::array kSideNames = {"baseline", "candidate"};
constexpr double kPercent = 100;

Cell number(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
Cell whole_ns(double value) { return std::isfinite(value) ? Cell(std::int64_t{std::llround(value)}) : Cell(); }

bool has_changed(const FunctionFinding& finding) {
  return finding.status != FunctionStatus::same && finding.status != FunctionStatus::unknown;
}

/// Whoever waits longer waits for something else.
bool waits(const RunComparison& comparison, const FunctionFinding& finding) {
  const std::string_view kind = comparison.texts[finding.kind];
  return kind == "sync" || kind == "syscall_wait" || kind == "blocked";
}

bool is_listed(const RunComparison& comparison, const FunctionFinding& finding) {
  return has_changed(finding) && !waits(comparison, finding);
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

bool has_several_devices(const RunComparison& comparison) {
  const FunctionFinding* first = nullptr;
  for (const FunctionFinding& f : comparison.functions) {
    if (!is_listed(comparison, f)) continue;
    if (first != nullptr && f.device != first->device) return true;
    if (first == nullptr) first = &f;
  }
  return false;
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

std::string functions_note(const RunComparison& comparison) {
  const auto count = [&](FunctionStatus status) {
    return std::ranges::count(comparison.functions, status, &FunctionFinding::status);
  };
  const auto waiting = std::ranges::count_if(
      comparison.functions, [&](const FunctionFinding& f) { return has_changed(f) && waits(comparison, f); });
  std::string note = fmt::format("Functions that take the same time within 5 %: {}; not decided: {}",
                                 count(FunctionStatus::same), count(FunctionStatus::unknown));
  if (waiting > 0) note += fmt::format("; calls that wait and changed: {}", waiting);
  return note + ".";
}

Table environment_table(const RunComparison& comparison, std::size_t most) {
  Table table{"Environment that differs",
              "environment",
              {{"Fact", "key", ColumnType::name},
               {"Baseline", "baseline", ColumnType::text},
               {"Candidate", "candidate", ColumnType::text}},
              {},
              {}};
  const std::size_t shown = most == 0 ? comparison.environment.size() : std::min(most, comparison.environment.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const model::EnvironmentChange& change = comparison.environment[i];
    table.rows.push_back({change.key, change.value[0], change.value[1]});
  }
  if (shown < comparison.environment.size())
    table.notes.push_back(
        fmt::format("{} more facts differ: --json shows them.", comparison.environment.size() - shown));
  return table;
}

Table resource_table(const RunComparison& comparison) {
  Table table{"Resources of devices that moved",
              "resources",
              {{"Resource", "metric", ColumnType::name},
               {"Device", "device", ColumnType::text},
               {"Baseline", "baseline", ColumnType::text},
               {"Candidate", "candidate", ColumnType::text},
               {"Ratio", "ratio", ColumnType::number, 2}},
              {},
              {}};
  const bool ranks = std::ranges::any_of(comparison.resources, [](const auto& r) { return r.rank > 0; });
  for (const model::ResourceChange& r : comparison.resources) {
    const auto text = [&](const std::optional<double>& v) {
      return v ? Cell(readable(*v, unit_name(r.unit))) : Cell();
    };
    const auto& [before, after] = r.value;
    table.rows.push_back({r.metric, ranks ? fmt::format("{} of rank {}", r.device, r.rank) : r.device, text(before),
                          text(after), before && after && *before > 0 ? Cell(*after / *before) : Cell()});
  }
  if (comparison.resources_alike > 0)
    table.notes.push_back(fmt::format("{} more differ by less than 10 %.", comparison.resources_alike));
  return table;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, 5> kNames = {"inconclusive", "regression", "improvement", "no_change",
                                                      "not_comparable"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string_view to_string(FunctionStatus status) {
  constexpr std::array<std::string_view, 5> kNames = {"unknown", "same", "changed", "new", "gone"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view to_string(model::Comparable level) {
  constexpr std::array<std::string_view, 3> kNames = {"comparable", "partly", "not_comparable"};
  return kNames[static_cast<std::size_t>(level)];
}

std::vector<std::string> outcome_lines(const RunComparison& comparison) {
  std::vector<std::string> lines;
  if (comparison.same_recording) {
    lines.emplace_back("Baseline and candidate are the same recording: there is nothing to compare.");
    return lines;
  }
  if (comparison.outcome == Outcome::not_comparable) {
    lines.push_back(fmt::format("Not comparable: {}", comparison.why));
    const auto& [base, candidate] = comparison.sides;
    const auto period = [](const std::optional<Ns>& ns) { return ns ? format_duration(*ns) : std::string("unknown"); };
    lines.push_back(fmt::format("cycles: {} in the baseline, {} in the candidate; nothing follows from that",
                                base.cycles, candidate.cycles));
    lines.push_back(fmt::format(
        "  median period of whole cycles: {} in the baseline, {} in the candidate; nothing follows from that",
        period(base.median_period), period(candidate.median_period)));
    lines.push_back(comparison.comparability.remedy + ".");
    return lines;
  }
  const bool limited = !comparison.why.empty();
  if (limited) lines.push_back(fmt::format("Outcome: inconclusive: {}", comparison.why));
  for (const model::CycleTimeOutcome& o : comparison.cycle_times) {
    std::string line = limited ? fmt::format("Cycle time ({}): {:+.1f} %", phase_name(o.phase), o.change * kPercent)
                               : fmt::format("Outcome ({}): {}; cycle time {:+.1f} %", phase_name(o.phase),
                                             to_string(o.outcome), o.change * kPercent);
    if (std::isfinite(o.low))
      line += fmt::format(" (95 % interval {:+.1f} to {:+.1f} %)", o.low * kPercent, o.high * kPercent);
    line += fmt::format(", from {} and {} whole cycles", o.cycles[0], o.cycles[1]);
    if (o.outcome == Outcome::inconclusive && !limited)
      line += std::isfinite(o.smallest_seen)
                  ? fmt::format("; a regression of {:.1f} % would have been seen", o.smallest_seen * kPercent)
                  : fmt::format("; too few independent ones to tell ({:.1f} and {:.1f}: neighbours are alike)",
                                o.effective[0], o.effective[1]);
    lines.push_back(std::move(line));
  }
  if (!limited)
    lines.push_back(fmt::format("Changes within {:g} % do not count. Assumed: {}.",
                                comparison.cycle_times.front().tolerance * kPercent,
                                fmt::join(comparison.assumptions, "; ")));
  return lines;
}

std::vector<std::string> note_lines(const RunComparison& comparison) {
  std::vector<std::string> notes = comparison.notes;
  if (comparison.same_recording) return notes;
  const auto listed = [&](const FunctionFinding& f) { return is_listed(comparison, f); };
  if (!comparison.functions.empty() && std::ranges::none_of(comparison.functions, listed))
    notes.push_back("No function is shown to have changed. " + functions_note(comparison));
  if (comparison.outcome != Outcome::not_comparable) {
    const auto& reasons = comparison.comparability.reasons;
    notes.insert(notes.end(), reasons.begin(), reasons.end());
    for (const model::ProcessPair& pair : comparison.processes)
      for (const std::size_t s : {0U, 1U})
        if (pair.pid[s] && !pair.pid[1 - s])
          notes.push_back(fmt::format("Not compared: process {} of the {}: the {} has no process of this role",
                                      *pair.pid[s], kSideNames[s], kSideNames[1 - s]));
    notes.push_back(
        fmt::format("Cycles begin at '{}' on both sides: {}", comparison.sides[0].anchor, comparison.sides[0].reason));
  }
  for (const std::size_t s : {0U, 1U}) {
    const model::ComparedSide& side = comparison.sides[s];
    if (side.recordings > 1)
      notes.push_back(fmt::format("{} recordings of the {} are pooled", side.recordings, kSideNames[s]));
    if (side.losses.empty()) continue;
    std::vector<std::string> counts;
    for (const model::LossCount& loss : side.losses) counts.push_back(fmt::format("{} {}", loss.count, loss.reason));
    notes.push_back(fmt::format("Losses in the {}: {}; 'culprit info --show losses {}' says what and why",
                                kSideNames[s], fmt::join(counts, ", "),
                                side.files.empty() ? "FILE" : side.files.front()));
  }
  return notes;
}

std::vector<Table> changed_functions(const RunComparison& comparison, std::size_t most_rows) {
  std::vector<Table> tables;
  const bool processes = has_several_processes(comparison);
  const bool devices = has_several_devices(comparison);
  for (const model::CycleTimeOutcome& o : comparison.cycle_times) {
    Table table{fmt::format("Functions that changed, per cycle ({})", phase_name(o.phase)),
                fmt::format("functions_{}", phase_name(o.phase)),
                {{"Function", "function", ColumnType::name}},
                {},
                {}};
    if (processes) table.columns.push_back({"Process", "process", ColumnType::text});
    if (devices) table.columns.push_back({"Device", "device", ColumnType::text});
    table.columns.insert(table.columns.end(), {{"Baseline", "baseline_ns", ColumnType::time},
                                               {"Candidate", "candidate_ns", ColumnType::time},
                                               {"Change", "impact_ns", ColumnType::time},
                                               {"Calls", "calls", ColumnType::text},
                                               {"Per call", "per_call", ColumnType::text}});
    std::size_t left_out = 0;
    for (const FunctionFinding& f : comparison.functions) {
      if (f.phase != o.phase || !is_listed(comparison, f)) continue;
      if (most_rows != 0 && table.rows.size() == most_rows) {
        ++left_out;
        continue;
      }
      auto& row = table.rows.emplace_back();
      row.emplace_back(std::string(comparison.texts[f.function]));
      if (processes) row.emplace_back(process_name(comparison, f));
      if (devices) row.emplace_back(std::string(comparison.texts[f.device]));
      row.insert(row.end(),
                 {whole_ns(f.time_ns[0]), whole_ns(f.time_ns[1]), whole_ns(f.impact_ns), calls(f), per_call(f)});
    }
    if (left_out > 0) table.notes.push_back(fmt::format("{} more changed: --json shows them.", left_out));
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  if (!tables.empty()) tables.back().notes.push_back(functions_note(comparison));
  return tables;
}

Table all_functions(const RunComparison& comparison) {
  Table table{"Functions",
              "functions",
              {{"Phase", "phase", ColumnType::text},
               {"Rank", "rank", ColumnType::count},
               {"Baseline process", "baseline_pid", ColumnType::count},
               {"Candidate process", "candidate_pid", ColumnType::count},
               {"Function", "function", ColumnType::name},
               {"Short name", "short_name", ColumnType::name},
               {"Kind", "kind", ColumnType::text},
               {"Device", "device", ColumnType::text},
               {"Status", "status", ColumnType::text},
               {"Baseline", "baseline_ns_per_cycle", ColumnType::number},
               {"Candidate", "candidate_ns_per_cycle", ColumnType::number},
               {"Impact", "impact_ns_per_cycle", ColumnType::number},
               {"Low", "ci_low_ns", ColumnType::number},
               {"High", "ci_high_ns", ColumnType::number},
               {"Baseline calls", "baseline_calls_per_cycle", ColumnType::number},
               {"Candidate calls", "candidate_calls_per_cycle", ColumnType::number},
               {"Baseline per call", "baseline_ns_per_call", ColumnType::number},
               {"Candidate per call", "candidate_ns_per_call", ColumnType::number},
               {"Work ratio", "work_ratio", ColumnType::number},
               {"q", "q", ColumnType::number}},
              {},
              {}};
  const auto text = [&](StringId id) { return std::string(comparison.texts[id]); };
  const auto known = [](const std::optional<std::int64_t>& value) { return value ? Cell(*value) : Cell(); };
  for (const FunctionFinding& f : comparison.functions) {
    const model::ProcessPair& pair = comparison.processes[f.process];
    table.rows.push_back({std::string(phase_name(f.phase)),
                          pair.rank >= 0 ? Cell(std::int64_t{pair.rank}) : Cell(),
                          known(pair.pid[0]),
                          known(pair.pid[1]),
                          text(f.function),
                          text(f.short_name),
                          text(f.kind),
                          text(f.device),
                          std::string(to_string(f.status)),
                          number(f.time_ns[0]),
                          number(f.time_ns[1]),
                          number(f.impact_ns),
                          number(f.low_ns),
                          number(f.high_ns),
                          number(f.calls[0]),
                          number(f.calls[1]),
                          number(f.per_call_ns[0]),
                          number(f.per_call_ns[1]),
                          number(f.work_ratio),
                          number(f.q)});
  }
  return table;
}

std::vector<Table> evidence_tables(const RunComparison& comparison, std::size_t most_facts) {
  std::vector<Table> tables;
  if (comparison.host) tables = host_tables(*comparison.host, true);
  if (!comparison.resources.empty()) tables.push_back(resource_table(comparison));
  if (!comparison.environment.empty()) tables.push_back(environment_table(comparison, most_facts));
  return tables;
}

}  // namespace culprit::report
