#include "report/host_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <string_view>

#include "core/units.h"
#include "model/table_rows.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::HostChange;

}  // namespace

std::string readable(double value, std::string_view unit) {
  if (unit == "bytes") return format_bytes(value);
  if (unit == "bytes/s") return format_bytes(value) + "/s";
  if (unit == "fraction") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "ns") return format_duration(value);
  if (unit == "ns/s") return fmt::format("{:.1f} ms/s", value / 1e6);
  if (unit == "Hz") return fmt::format("{:.0f} MHz", value / 1e6);
  if (unit == "count") return fmt::format("{:.2f}", value);
  if (unit == "count/s") return fmt::format("{:.1f} /s", value);
  if (unit.empty()) return fmt::format("{:g}", value);
  return fmt::format("{:.1f} {}", value, unit);
}

namespace {

Cell text(const std::optional<double>& value, std::string_view unit) {
  return value ? Cell{readable(*value, unit)} : Cell{};
}

const HostChange* counter_of(const model::HostChanges& changes, std::string_view name) {
  const auto at = std::ranges::find(changes.counters, name, &HostChange::what);
  return at == changes.counters.end() ? nullptr : &*at;
}

Cell ratio(const HostChange& change) {
  const auto& [base, candidate] = change.value;
  if (!base || !candidate || *base <= 0) return {};
  return *candidate / *base;
}

/// "host.cpu3.user": what people first look at as "host.cpu.user".
bool is_of_one_part(std::string_view name) {
  for (const std::string_view prefix : {"host.cpu", "host.numa"})
    if (name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= '0' &&
        name[prefix.size()] <= '9')
      return true;
  return false;
}

model::Table states_table(const model::HostChanges& changes) {
  model::Table table = model::make_table<HostChange>(
      changes.per_second ? "What the threads did per second" : "What the threads did per step", "host_states",
      {{{"All threads of the recorded processes", "state", ColumnType::name}, &HostChange::what},
       {{"Baseline", "baseline_ns", ColumnType::time}, [](const HostChange& state) { return state.value[0]; }},
       {{"Candidate", "candidate_ns", ColumnType::time}, [](const HostChange& state) { return state.value[1]; }},
       {{"Difference", "difference_ns", ColumnType::time},
        [](const HostChange& state) { return *state.value[1] - *state.value[0]; }},
       {{"Ratio", "ratio", ColumnType::number, 2}, ratio}},
      changes.states);
  table.notes.push_back(
      fmt::format("Sums over threads, so they can exceed the {0}. Only what differs by more than 0.5 % of it.",
                  changes.per_second ? "second" : "period"));
  return table;
}

model::Table step_table(const model::HostChanges& changes) {
  const bool sums = changes.step_thread.empty();  // of profile tables, which know no threads
  model::Table table = model::make_table<HostChange>(
      sums ? "Where the threads were in a step"
           : fmt::format("What a step waited for (thread '{}')", changes.step_thread),
      "step_thread",
      {{{sums ? "All threads of the process were" : "The thread that runs it was", "state", ColumnType::name},
        &HostChange::what},
       {{"Baseline", "baseline_ns", ColumnType::time}, [](const HostChange& state) { return state.value[0]; }},
       {{"Candidate", "candidate_ns", ColumnType::time}, [](const HostChange& state) { return state.value[1]; }},
       {{"Difference", "difference_ns", ColumnType::time},
        [](const HostChange& state) { return *state.value[1] - *state.value[0]; }},
       {{"Ratio", "ratio", ColumnType::number, 2}, ratio}},
      changes.step);
  if (sums) table.notes.emplace_back("Sums over threads: they can be more than the step is long");
  return table;
}

model::Table counters_table(const model::HostChanges& changes, bool for_people) {
  const ColumnType type = for_people ? ColumnType::text : ColumnType::number;
  const auto side = [for_people](std::size_t i) {
    return [=](const HostChange& counter) {
      return for_people ? text(counter.value[i], counter.unit) : model::cell_of(counter.value[i]);
    };
  };
  const std::size_t most = changes.most_counters > 0 && for_people ? changes.most_counters : changes.counters.size();
  std::vector<HostChange> listed;
  for (const HostChange& counter : changes.counters)
    if (listed.size() < most && (!for_people || !is_of_one_part(counter.what))) listed.push_back(counter);
  model::Table table =
      model::make_table<HostChange>("Counters that moved", "host_counters",
                                    {{{"Counter", "counter", ColumnType::name}, &HostChange::what},
                                     {{"Baseline", "baseline", type}, side(0)},
                                     {{"Candidate", "candidate", type}, side(1)},
                                     {{"Unit", "unit"}, &HostChange::unit, model::present_if(!for_people)},
                                     {{"Ratio", "ratio", ColumnType::number, 2}, ratio}},
                                    listed);
  const auto parts =
      for_people ? std::ranges::count_if(changes.counters, [](const HostChange& c) { return is_of_one_part(c.what); })
                 : 0;
  const std::size_t hidden = changes.counters.size() - listed.size() - static_cast<std::size_t>(parts);
  if (changes.counters_alike > 0)
    table.notes.push_back(
        fmt::format("Means while the steps ran. {} more differ by less than 10 %.", changes.counters_alike));
  if (parts > 0) table.notes.push_back(fmt::format("{} of single CPUs and memory nodes: --json shows them.", parts));
  if (hidden > 0) table.notes.push_back(fmt::format("{} more moved, less surely: --json shows them.", hidden));
  return table;
}

model::Table requests_table(const model::HostChanges& changes) {
  using model::RequestChange;
  const auto of = [](auto RequestChange::*sides, std::size_t s) {
    return [=](const RequestChange& change) { return (change.*sides)[s]; };
  };
  return model::make_table<RequestChange>(
      "Requests", "requests",
      {{{"Time", "time", ColumnType::name}, &RequestChange::what},
       {{"Baseline p50", "baseline_p50_ns", ColumnType::time}, of(&RequestChange::median, 0)},
       {{"Candidate p50", "candidate_p50_ns", ColumnType::time}, of(&RequestChange::median, 1)},
       {{"Ratio", "ratio", ColumnType::number, 2},
        [](const RequestChange& c) { return c.median[0] > 0 ? Cell(c.median[1] / c.median[0]) : Cell(); }},
       {{"Baseline p99", "baseline_p99_ns", ColumnType::time, 2, true}, of(&RequestChange::p99, 0)},
       {{"Candidate p99", "candidate_p99_ns", ColumnType::time, 2, true}, of(&RequestChange::p99, 1)},
       {{"Baseline", "baseline_count", ColumnType::count, 3, true}, of(&RequestChange::count, 0)},
       {{"Candidate", "candidate_count", ColumnType::count, 3, true}, of(&RequestChange::count, 1)},
       {{"Moved", "moved"}, [](const RequestChange& c) { return std::string(c.moved ? "yes" : "no"); }}},
      changes.requests);
}

}  // namespace

std::string requests_text(const model::HostChanges& changes) {
  constexpr std::array<std::string_view, 3> kShown = {"time to first token", "time per output token", "queue wait"};
  std::string text;
  for (const std::string_view what : kShown)
    if (const auto at = std::ranges::find(changes.requests, what, &model::RequestChange::what);
        at != changes.requests.end() && at->moved)
      text += fmt::format("{}{} {} -> {}", text.empty() ? "Requests: " : ", ", what, format_duration(at->median[0]),
                          format_duration(at->median[1]));
  return text.empty() ? text : text + " (p50)";
}

std::string steps_text(const model::HostChanges& changes) {
  if (changes.per_second) return {};
  const auto period = std::ranges::find(changes.states, "period", &HostChange::what);
  if (period == changes.states.end() || period->value[0].value_or(0) <= 0 || period->value[1].value_or(0) <= 0)
    return {};
  const auto [before, after] = std::array{*period->value[0], *period->value[1]};
  const auto [earlier, later] = changes.steps_per_second;
  const bool counted = earlier > 0 && later > 0;
  return fmt::format("{:.3g}/s -> {:.3g}/s, {:+.1f} % ({}{} -> {})", counted ? earlier : 1e9 / before,
                     counted ? later : 1e9 / after, ((counted ? later / earlier : before / after) - 1) * 100,
                     counted ? "like ones " : "", format_duration(before), format_duration(after));
}

std::string beside_text(const model::HostChanges& changes) {
  constexpr std::size_t kMostNamed = 3;
  std::string beside;
  for (std::size_t i = 0; i < std::min(changes.beside.size(), kMostNamed); ++i) {
    const HostChange& other = changes.beside[i];
    const bool share = other.unit == "fraction";  // tables know the share of all
    beside += fmt::format("{}{} took ", i == 0 ? "Beside it " : ", ", other.what);
    beside +=
        share ? fmt::format("{:.0f} % of the CPUs (baseline {:.0f} %)", *other.value[1] * 100, *other.value[0] * 100)
              : fmt::format("{:.2f} CPUs (baseline {:.2f})", *other.value[1], *other.value[0]);
  }
  return beside;
}

std::string memory_text(const model::HostChanges& changes) {
  if (!changes.memory) return {};
  const auto& [change, low, high] = *changes.memory;
  const auto period = std::ranges::find(changes.states, "period", &HostChange::what);
  if (period == changes.states.end()) return {};
  // Who runs less leaves the caches to the recorder: that is the program's doing.
  const bool longer = period->value[1].value_or(0) > period->value[0].value_or(0);
  if (longer != (change > 0)) return {};
  return fmt::format(
      "The machine's memory was {}: fixed work of the recorder through it took x{:.2f} (95 % interval x{:.2f} to "
      "x{:.2f})",
      longer ? "slower" : "faster", 1 + change, 1 + low, 1 + high);
}

std::string machine_text(const model::HostChanges& changes) {
  if (!changes.machine) return {};
  const auto& [change, low, high] = *changes.machine;
  return fmt::format(
      "The machine was {}: fixed work of the recorder took {:+.1f} % (95 % interval {:+.1f} % to {:+.1f} %)",
      change > 0 ? "slower" : "faster", change * 100, low * 100, high * 100);
}

std::string throttled_text(const model::HostChanges& changes) {
  const HostChange* time = counter_of(changes, "cgroup.cpu.throttled_time");
  if (time == nullptr) return {};
  const bool throttled = time->value[0].value_or(0) > 0 || time->value[1].value_or(0) > 0;
  if (!throttled && counter_of(changes, "cgroup.cpu.quota") == nullptr) return {};
  const auto text_of = [&](std::size_t s) { return readable(time->value[s].value_or(0), time->unit); };
  std::string text = fmt::format("Throttled by a CPU quota: {} -> {}", text_of(0), text_of(1));
  if (const HostChange* quota = counter_of(changes, "cgroup.cpu.quota")) {
    const auto cpus = [&](std::size_t s) {
      return quota->value[s] ? fmt::format("{:.2f} CPUs", *quota->value[s]) : std::string("none");
    };
    text += fmt::format("; quota {} -> {}", cpus(0), cpus(1));
  }
  return text;
}

std::vector<model::Table> host_tables(const model::HostChanges& changes, bool for_people) {
  std::vector<model::Table> tables;
  if (!changes.requests.empty()) tables.push_back(requests_table(changes));
  if (!changes.step.empty()) tables.push_back(step_table(changes));
  const auto is_period = [](const HostChange& state) { return state.what == "period"; };  // the outcome tells it
  if (!std::ranges::all_of(changes.states, is_period)) tables.push_back(states_table(changes));
  if (!changes.counters.empty()) tables.push_back(counters_table(changes, for_people));
  return tables;
}

std::vector<model::Table> host_rows(const model::HostChanges& changes) {
  return {requests_table(changes), step_table(changes), states_table(changes), counters_table(changes, false)};
}

}  // namespace culprit::report
