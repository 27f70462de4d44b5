#include "report/work_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>

#include "core/units.h"
#include "model/table_rows.h"
#include "report/render.h"
#include "stats/log_buckets.h"
#include "stats/quantile.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnsOf;
using model::ColumnType;
using model::CountedTime;
using model::Table;
using model::UnitKind;
using model::WorkUnit;
using model::WorkUnits;

constexpr double kLeastCpus = 0.05;
constexpr std::size_t kMostNamed = 3;
constexpr double kWorthSaying = 0.01;  // share of the work

/// By how much sums are divided, and what that is called.
struct Per {
  double units = 1;
  std::string name;  ///< "request", "second"
};

Per per_unit(const WorkUnits& work) {
  const WorkUnit& unit = work.units.front();
  if (unit.kind == UnitKind::window || unit.count == 0) return {std::max(work.seconds, 1e-9), "second"};
  return {static_cast<double>(unit.count), std::string(to_string(unit.kind))};
}

/// " (± 2.6 %)" of an estimate.
std::string error_text(const std::optional<double>& error) {
  if (!error) return {};
  return *error < 1 ? fmt::format(" (± {:.1f} %)", *error * 100) : " (an estimate)";
}

std::string rate_text(double rate) {
  return rate >= 1000 ? format_count(static_cast<std::uint64_t>(std::llround(rate))) : fmt::format("{:.3g}", rate);
}

std::string share_text(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0);
}

std::string named(const std::vector<CountedTime>& list, double units, std::string_view lead) {
  std::string text;
  for (std::size_t i = 0; i < std::min(list.size(), kMostNamed); ++i)
    text += fmt::format("{}{} {}", text.empty() ? lead : ", ", list[i].name, format_duration(list[i].total_ns / units));
  return text;
}

std::uint64_t latency_count(const WorkUnits& work) {
  return std::accumulate(work.answers.begin(), work.answers.end(), std::uint64_t{work.latencies.size()});
}

std::optional<Ns> latency_quantile(const WorkUnits& work, double share) {
  if (!work.latencies.empty()) return stats::quantile_of_sorted(std::span(work.latencies), share);
  const auto value = stats::log_bucket_quantile(work.answers, share);
  return value ? std::optional<Ns>(std::llround(*value)) : std::nullopt;
}

Cell rounded(double value) { return static_cast<std::int64_t>(std::llround(value)); }

Table units_table(const WorkUnits& work) {
  Table table = model::make_table<WorkUnit>(
      "Units of work", "work_units",
      {{{"Unit", "unit"}, [](const WorkUnit& unit) { return to_string(unit.kind); }},
       {{"Process", "process", ColumnType::name}, &WorkUnit::process},
       {{"Thread", "thread", ColumnType::name},
        [](const WorkUnit& unit) {
          return unit.threads > 1 ? fmt::format("{} ({} threads)", unit.thread, unit.threads) : unit.thread;
        }},
       {{"Between", "calls"},
        [](const WorkUnit& unit) {
          return unit.send.empty() ? unit.receive : fmt::format("{}, {}", unit.receive, unit.send);
        }},
       {{"Count", "count", ColumnType::count}, &WorkUnit::count},
       {{"±", "count_error", ColumnType::percent, 1, true}, [](const WorkUnit& unit) { return unit.count_error; }},
       {{"Per second", "per_second", ColumnType::number, 1},
        [&](const WorkUnit& unit) { return static_cast<double>(unit.count) / std::max(work.seconds, 1e-9); }},
       {{"Sure", "confidence", ColumnType::percent, 0},
        [](const WorkUnit& unit) { return unit.kind == UnitKind::window ? Cell() : Cell(unit.confidence); }},
       {{"Why", "reason", ColumnType::name, 0, true}, &WorkUnit::reason}},
      work.units);
  table.notes.emplace_back("Numbers below are per unit of the first row.");
  return table;
}

Table times_table(const WorkUnits& work, const Per& per, std::size_t most_rows) {
  const model::WorkWindow sum = sum_of(work);
  const double all = sum.on_cpu + sum.run_queue + sum.blocked;
  struct Row {
    std::string state;
    double total;
    std::optional<double> times;
  };
  std::vector<Row> rows = {{"on CPU", sum.on_cpu, {}}, {"runnable, in the run queue", sum.run_queue, {}}};
  for (const CountedTime& blocked : work.blocked)
    rows.push_back({"blocked in " + blocked.name, blocked.total_ns, static_cast<double>(blocked.count) / per.units});
  if (most_rows != 0 && rows.size() > std::max<std::size_t>(most_rows, 2))
    rows.resize(std::max<std::size_t>(most_rows, 2));
  Table table = model::make_table<Row>(
      fmt::format("What the work took, per {}", per.name), "work_time",
      {{{"Threads were", "state", ColumnType::name}, &Row::state},
       {{"Time", "per_unit_ns", ColumnType::time}, [&](const Row& row) { return rounded(row.total / per.units); }},
       {{"Share", "share", ColumnType::percent, 1},
        [&](const Row& row) { return all > 0 ? Cell(row.total / all) : Cell(); }},
       {{"Times", "times", ColumnType::number, 2}, &Row::times}},
      rows);
  table.notes.push_back(fmt::format("All recorded threads together. Waiting for work is apart: {} in all{}",
                                    format_duration(sum.waiting), named(work.waits, 1, ", most in ")));
  return table;
}

Table calls_table(const WorkUnits& work, const Per& per, std::size_t most_rows,
                  std::string_view time_key = "per_unit_ns") {
  Table table = model::make_table<CountedTime>(
      fmt::format("System calls, per {}", per.name), "work_calls",
      {{{"Call", "call", ColumnType::name}, &CountedTime::name},
       {{"Calls", "per_unit", ColumnType::number, 3},
        [&](const CountedTime& call) { return static_cast<double>(call.count) / per.units; }},
       {{"Time", std::string(time_key), ColumnType::time},
        [&](const CountedTime& call) { return rounded(call.total_ns / per.units); }},
       {{"Per call", "per_call_ns", ColumnType::time},
        [](const CountedTime& call) { return rounded(call.total_ns / static_cast<double>(call.count)); }},
       {{"Count", "count", ColumnType::count}, &CountedTime::count}},
      work.calls, most_rows);
  if (!table.rows.empty()) table.notes.emplace_back("Their time is part of the states of the threads above.");
  return table;
}

Table others_table(const WorkUnits& work) {
  using model::Bystander;
  const auto is_shown = [](const Bystander& other) { return other.cpus >= kLeastCpus; };
  return model::make_table<Bystander>("Processes beside the recorded ones", "others",
                                      {{{"Process", "process", ColumnType::name}, &Bystander::name},
                                       {{"CPUs", "cpus", ColumnType::number, 2}, &Bystander::cpus}},
                                      work.others | std::views::filter(is_shown));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> work_lines(const WorkUnits& work) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (!work.recorded) return lines;
  const WorkUnit& unit = work.units.front();
  const Per per = per_unit(work);
  const model::WorkWindow sum = sum_of(work);
  const double worked = sum.on_cpu + sum.run_queue + sum.blocked;
  if (unit.kind == UnitKind::window) {
    lines.emplace_back("throughput", work.idle ? unit.reason : "unknown: no unit of work was found");
    if (!work.idle) lines.emplace_back("", unit.reason);
  } else {
    lines.emplace_back("throughput", fmt::format("{}/s, {}", rate_text(static_cast<double>(unit.count) / work.seconds),
                                                 unit_text(unit)));
    lines.emplace_back("", fmt::format("{}{} in {:.1f} s, {:.0f} % sure:", format_count(unit.count),
                                       error_text(unit.count_error), work.seconds, unit.confidence * 100));
    lines.emplace_back("", unit.reason);
  }
  if (const std::uint64_t count = latency_count(work); count > 0)
    lines.emplace_back(
        std::string(to_string(work.latency_kind)),
        fmt::format("median {}, p90 {}, p99 {}{} of {}", format_duration(*latency_quantile(work, 0.5)),
                    format_duration(*latency_quantile(work, 0.9)), format_duration(*latency_quantile(work, 0.99)),
                    work.port.empty() ? "" : " on " + work.port, format_count(count)));
  lines.emplace_back("per " + per.name,
                     fmt::format("on CPU {} ({}), run queue {} ({})", format_duration(sum.on_cpu / per.units),
                                 share_text(sum.on_cpu, worked), format_duration(sum.run_queue / per.units),
                                 share_text(sum.run_queue, worked)));
  if (sum.blocked > kWorthSaying * worked)
    lines.emplace_back("", fmt::format("blocked {} ({}){}", format_duration(sum.blocked / per.units),
                                       share_text(sum.blocked, worked), named(work.blocked, per.units, ": ")));
  lines.emplace_back("CPUs",
                     fmt::format("{:.2f} used, {:.2f} more wanted (run queue)", sum.on_cpu / (work.seconds * kSecond),
                                 sum.run_queue / (work.seconds * kSecond)));
  std::string beside;
  for (std::size_t i = 0; i < std::min(work.others.size(), kMostNamed); ++i)
    if (work.others[i].cpus >= kLeastCpus)
      beside +=
          fmt::format("{}{} took {:.2f} CPUs", beside.empty() ? "" : ", ", work.others[i].name, work.others[i].cpus);
  if (!beside.empty()) lines.emplace_back("beside", beside);
  return lines;
}

std::vector<Table> work_tables(const WorkUnits& work, std::size_t most_rows) {
  if (!work.recorded) return {};
  const Per per = per_unit(work);
  std::vector<Table> tables = {units_table(work), times_table(work, per, most_rows)};
  for (Table& table : std::vector{calls_table(work, per, most_rows), others_table(work)})
    if (!table.rows.empty()) tables.push_back(std::move(table));
  return tables;
}

std::vector<Table> work_time_tables(const WorkUnits& work, std::size_t most_rows) {
  const model::WorkWindow sum = sum_of(work);
  struct Row {
    std::string state;
    double total;
    std::optional<std::uint64_t> count;
    double whole;
  };
  const ColumnsOf<Row> columns = {
      {{"Threads were", "state", ColumnType::name}, &Row::state},
      {{"Time", "total_ns", ColumnType::time}, [](const Row& row) { return rounded(row.total); }},
      {{"Share", "share", ColumnType::percent, 1},
       [](const Row& row) { return row.whole > 0 ? Cell(row.total / row.whole) : Cell(); }},
      {{"Times", "times", ColumnType::count}, &Row::count}};
  double blocked = 0;
  for (const CountedTime& one : work.blocked) blocked += one.total_ns;
  const double worked = sum.on_cpu + sum.run_queue + blocked;
  std::vector<Row> states = {{"on CPU", sum.on_cpu, {}, worked},
                             {"runnable, in the run queue", sum.run_queue, {}, worked}};
  for (const CountedTime& one : work.blocked)
    states.push_back({"blocked in " + one.name, one.total_ns, one.count, worked});
  std::ranges::stable_sort(states, [](const Row& a, const Row& b) { return a.total > b.total; });
  double waited = 0;
  for (const CountedTime& one : work.waits) waited += one.total_ns;
  std::vector<Row> waits;
  waits.reserve(work.waits.size());
  for (const CountedTime& one : work.waits) waits.push_back({one.name, one.total_ns, one.count, waited});
  std::vector<Table> tables = {
      model::make_table<Row>("The work of all recorded threads", "work_states", columns, states, most_rows)};
  if (!waits.empty())
    tables.push_back(model::make_table<Row>("Apart from it, waits for work", "work_waits", columns, waits, most_rows));
  const Per all{1, "recording"};
  if (Table calls = calls_table(work, all, most_rows, "total_ns"); !calls.rows.empty()) {
    calls.title = "System calls";
    model::keep_columns(calls, {true, false, true, true, true});
    tables.push_back(std::move(calls));
  }
  return tables;
}

void write_work(JsonWriter& json, const WorkUnits& work) {
  json.begin_object("work_units");
  json.member("recorded", work.recorded);
  json.member("idle", work.idle);
  json.member("program", work.program);
  json.member("seconds", work.seconds);
  json.begin_object("latency", JsonForm::line);
  json.member("what", to_string(work.latency_kind));
  json.member("n", latency_count(work));
  if (!work.port.empty()) json.member("port", work.port);
  json.member("p50_ns", latency_quantile(work, 0.5));
  json.member("p90_ns", latency_quantile(work, 0.9));
  json.member("p99_ns", latency_quantile(work, 0.99));
  json.end_object();
  for (const Table& table : work_tables(work, 0))
    write_rows(json, table.key == "work_units" ? "units" : table.key, table);
  json.end_object();
}

}  // namespace culprit::report
