#include "report/collected_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "model/table_rows.h"
#include "report/off_cpu_report.h"

namespace culprit::report {

namespace {

using model::CallChange;
using model::Cell;
using model::ColumnType;
using model::DiskChange;
using model::OwnDiskChange;
using model::ShareChange;
using model::Table;

constexpr std::string_view kRequestsUncounted = "requests_uncounted";  // of LossReason

/// 0 is not known.
auto time_of(std::array<double, 2> DiskChange::*times, std::size_t side) {
  return [=](const DiskChange& disk) {
    const double time = (disk.*times)[side];
    return time > 0 ? Cell(std::int64_t{std::llround(time)}) : Cell();
  };
}

auto rate_of(std::array<double, 2> DiskChange::*rates, std::size_t side) {
  return [=](const DiskChange& disk) { return (disk.*rates)[side]; };
}

auto share_of(std::size_t side) {
  return [=](const ShareChange& change) { return change.share[side]; };
}

Table shares_table(std::string title, std::string name, const std::vector<ShareChange>& changes) {
  Table table = model::make_table<ShareChange>(std::move(title), std::move(name),
                                               {{{"Function", "function", ColumnType::name}, &ShareChange::function},
                                                {{"Baseline", "baseline_share", ColumnType::percent}, share_of(0)},
                                                {{"Candidate", "candidate_share", ColumnType::percent}, share_of(1)}},
                                               changes);
  if (!table.rows.empty()) table.notes.emplace_back("Those that moved by more than they vary inside the recordings.");
  return table;
}

Cell known_time(double ns) { return ns > 0 ? Cell(std::int64_t{std::llround(ns)}) : Cell(); }

/// Nothing where the baseline has none.
Cell ratio_of(const std::array<double, 2>& values) { return values[0] > 0 ? Cell(values[1] / values[0]) : Cell(); }

template <class Value>
auto own_of(std::array<Value, 2> OwnDiskChange::*values, std::size_t side) {
  return [=](const OwnDiskChange& disk) { return (disk.*values)[side]; };
}

auto own_time(std::size_t side) {
  return [=](const OwnDiskChange& disk) { return known_time(disk.mean_ns[side]); };
}

auto own_ratio(std::array<double, 2> OwnDiskChange::*values) {
  return [=](const OwnDiskChange& disk) { return ratio_of(disk.*values); };
}

/// `whole`: for programs, which read no titles.
Table own_disks_table(const model::OwnDiskChanges& changes, std::size_t most_rows, bool whole) {
  const auto in_files = model::present_if(whole);
  return model::make_table<OwnDiskChange>(
      fmt::format("Disk requests of the program for one {}, and how long one takes", changes.per), "disk_requests",
      {{{"Request", "request", ColumnType::name}, &OwnDiskChange::name},
       {{"Per", "per"}, [&](const OwnDiskChange&) { return changes.per; }, in_files},
       {{"Number", "baseline_per_unit", ColumnType::number, 3}, own_of(&OwnDiskChange::per_unit, 0)},
       {{"candidate", "candidate_per_unit", ColumnType::number, 3}, own_of(&OwnDiskChange::per_unit, 1)},
       {{"Number ratio", "per_unit_ratio", ColumnType::number, 2, true}, own_ratio(&OwnDiskChange::per_unit)},
       {{"Bytes", "baseline_bytes_per_unit", ColumnType::bytes}, own_of(&OwnDiskChange::bytes_per_unit, 0)},
       {{"candidate", "candidate_bytes_per_unit", ColumnType::bytes}, own_of(&OwnDiskChange::bytes_per_unit, 1)},
       {{"Bytes ratio", "bytes_per_unit_ratio", ColumnType::number, 2, true},
        own_ratio(&OwnDiskChange::bytes_per_unit)},
       {{"One took", "baseline_mean_ns", ColumnType::time}, own_time(0)},
       {{"candidate", "candidate_mean_ns", ColumnType::time}, own_time(1)},
       {{"Ratio", "mean_ratio", ColumnType::number, 2},
        [](const OwnDiskChange& disk) { return disk.mean_ns[1] > 0 ? ratio_of(disk.mean_ns) : Cell(); }},
       {{"Count", "baseline_count", ColumnType::count}, own_of(&OwnDiskChange::count, 0), in_files},
       {{"candidate", "candidate_count", ColumnType::count}, own_of(&OwnDiskChange::count, 1), in_files}},
      changes.requests, most_rows);
}

/// What is missing in the numbers; empty: nothing.
std::string uncounted_text(const model::ComparedSide& side, std::string_view name) {
  std::uint64_t uncounted = 0;
  for (const model::LossCount& loss : side.losses)
    if (loss.reason == kRequestsUncounted) uncounted += loss.count;
  return uncounted == 0 ? std::string()
                        : fmt::format("Of the {} {} requests to disks stand in no total, whoever issued them.", name,
                                      format_count(uncounted));
}

/// For people.
Table own_disks_shown(const model::RunComparison& comparison, std::size_t most_rows) {
  Table table = own_disks_table(comparison.own_disks, most_rows, false);
  if (table.rows.empty()) return table;
  if (most_rows != 0) model::drop_empty_columns(table);
  table.notes.emplace_back(
      "Those that differ most first; what the kernel writes back later from its cache is left out.");
  constexpr std::array<std::string_view, 2> kSides = {"baseline", "candidate"};
  for (std::size_t s = 0; s < kSides.size(); ++s)
    if (std::string text = uncounted_text(comparison.sides[s], kSides[s]); !text.empty())
      table.notes.push_back(std::move(text));
  return table;
}

void write_shares(JsonWriter& json, std::string_view name, const std::vector<ShareChange>& changes) {
  json.begin_array(name);
  for (const ShareChange& change : changes) {
    json.begin_object(JsonForm::line);
    json.member("function", change.function);
    json.member("baseline", change.share[0]);
    json.member("candidate", change.share[1]);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

Table calls_table(std::string title, std::string name, const std::vector<CallChange>& changes, std::size_t most_rows) {
  std::vector<CallChange> busy;
  std::ranges::copy_if(changes, std::back_inserter(busy), [](const CallChange& c) { return !c.waits; });
  Table calls = model::make_table<CallChange>(
      std::move(title), std::move(name),
      {{{"Call", "call", ColumnType::name}, &CallChange::name},
       {{"Baseline", "baseline_per_unit", ColumnType::number, 3}, [](const auto& c) { return c.per_unit[0]; }},
       {{"Candidate", "candidate_per_unit", ColumnType::number, 3}, [](const auto& c) { return c.per_unit[1]; }},
       {{"One took", "baseline_per_call_ns", ColumnType::time},
        [](const auto& c) { return known_time(c.per_call_ns[0]); }},
       {{"candidate", "candidate_per_call_ns", ColumnType::time},
        [](const auto& c) { return known_time(c.per_call_ns[1]); }},
       {{"Ratio", "per_call_ratio", ColumnType::number, 2},
        [](const auto& c) { return c.per_unit[1] > 0 ? ratio_of(c.per_call_ns) : Cell(); }},
       {{"p99 ratio", "p99_ratio", ColumnType::number, 2},
        [](const auto& c) { return c.p99_ns[1] > 0 ? ratio_of(c.p99_ns) : Cell(); }},
       {{"p99", "baseline_p99_ns", ColumnType::time, 3, true}, [](const auto& c) { return known_time(c.p99_ns[0]); }},
       {{"p99 candidate", "candidate_p99_ns", ColumnType::time, 3, true},
        [](const auto& c) { return known_time(c.p99_ns[1]); }}},
      busy, most_rows);
  if (most_rows != 0) model::drop_empty_columns(calls);  // files keep them all
  if (!calls.rows.empty())
    calls.notes.emplace_back("Those that differ most first; calls that wait for work are left out.");
  return calls;
}

namespace {

/// What was collected of the calls, Python, the CPUs and the disks, in this order.
std::array<Table, 4> collected(const model::RunComparison& comparison, std::size_t most_rows) {
  const auto in_files = model::present_if(most_rows == 0);
  Table disks = model::make_table<DiskChange>(
      "Requests to the disks of the machine, and how long one takes", "disks",
      {{{"Request", "request", ColumnType::name}, &DiskChange::name},
       {{"Per s", "baseline_per_s", ColumnType::number, 1}, rate_of(&DiskChange::per_second, 0)},
       {{"candidate", "candidate_per_s", ColumnType::number, 1}, rate_of(&DiskChange::per_second, 1)},
       {{"One took", "baseline_mean_ns", ColumnType::time}, time_of(&DiskChange::mean_ns, 0)},
       {{"candidate", "candidate_mean_ns", ColumnType::time}, time_of(&DiskChange::mean_ns, 1)},
       {{"p99", "baseline_p99_ns", ColumnType::time}, time_of(&DiskChange::p99_ns, 0)},
       {{"candidate", "candidate_p99_ns", ColumnType::time}, time_of(&DiskChange::p99_ns, 1)},
       {{"Bytes/s", "baseline_bytes_per_s", ColumnType::bytes}, rate_of(&DiskChange::bytes_per_second, 0), in_files},
       {{"candidate", "candidate_bytes_per_s", ColumnType::bytes},
        rate_of(&DiskChange::bytes_per_second, 1),
        in_files}},
      comparison.disks, most_rows);
  if (most_rows != 0) model::drop_empty_columns(disks);
  return {
      calls_table("System calls of one step, and how long one takes", "step_calls", comparison.system_calls, most_rows),
      shares_table("Functions of Python on the CPU, with native code called, share of the samples", "python",
                   comparison.python),
      shares_table("Functions on the CPU, share of the samples", "on_cpu", comparison.on_cpu), std::move(disks)};
}

}  // namespace

std::vector<Table> collected_tables(const model::RunComparison& comparison, std::size_t most_rows) {
  auto [calls, python, on_cpu, disks] = collected(comparison, most_rows);
  std::vector<Table> tables;
  if (!calls.rows.empty()) tables.push_back(std::move(calls));
  for (Table& table : off_cpu_tables(comparison.off_cpu)) tables.push_back(std::move(table));
  Table own_disks = own_disks_shown(comparison, most_rows);
  for (Table* table : {&python, &on_cpu, &own_disks, &disks})
    if (!table->rows.empty()) tables.push_back(std::move(*table));
  return tables;
}

std::vector<Table> collected_rows(const model::RunComparison& comparison) {
  auto [calls, python, on_cpu, disks] = collected(comparison, 0);
  std::array tables = {std::move(calls), std::move(python), std::move(on_cpu),
                       own_disks_table(comparison.own_disks, 0, true), std::move(disks)};
  return {std::make_move_iterator(tables.begin()), std::make_move_iterator(tables.end())};
}

void write_calls(JsonWriter& json, std::string_view name, const std::vector<CallChange>& calls) {
  json.begin_array(name);
  for (const CallChange& call : calls) {
    json.begin_object(JsonForm::line);
    json.member("name", call.name);
    json.member("waits", call.waits);
    json.member("per_unit", call.per_unit);
    json.member("per_call_ns", call.per_call_ns);
    json.member("p99_ns", call.p99_ns);
    json.end_object();
  }
  json.end_array();
}

void write_collected(JsonWriter& json, const model::RunComparison& comparison) {
  write_calls(json, "system_calls", comparison.system_calls);
  json.begin_array("disks");
  for (const DiskChange& disk : comparison.disks) {
    json.begin_object(JsonForm::line);
    json.member("name", disk.name);
    json.member("per_second", disk.per_second);
    json.member("bytes_per_second", disk.bytes_per_second);
    json.member("mean_ns", disk.mean_ns);
    json.member("p99_ns", disk.p99_ns);
    json.end_object();
  }
  json.end_array();
  json.begin_object("disk_requests");
  json.member("per", comparison.own_disks.per);
  json.begin_array("requests");
  for (const OwnDiskChange& disk : comparison.own_disks.requests) {
    json.begin_object(JsonForm::line);
    json.member("name", disk.name);
    json.member("count", disk.count);
    json.member("per_unit", disk.per_unit);
    json.member("bytes_per_unit", disk.bytes_per_unit);
    json.member("mean_ns", disk.mean_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  write_shares(json, "on_cpu", comparison.on_cpu);
  write_shares(json, "python", comparison.python);
  write_off_cpu(json, comparison.off_cpu);
}

}  // namespace culprit::report
