#include "report/off_cpu_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "model/table_rows.h"

namespace culprit::report {

namespace {

using model::ColumnType;
using model::OffCpuChange;
using model::OffCpuChanges;
using model::Table;

std::int64_t whole(double ns) { return std::llround(ns); }

auto time_of(std::size_t side) {
  return [=](const OffCpuChange& c) { return whole(c.ns_per_unit[side]); };
}

auto number_of(std::size_t side) {
  return [=](const OffCpuChange& c) { return c.per_unit[side]; };
}

constexpr std::string_view kHowSure = "Those that moved by more than they vary inside the recordings.";

/// `counted`: the numbers come first, and the times where there is room.
Table table_of(std::string title, std::string key, std::string name, const std::vector<OffCpuChange>& changes,
               bool counted) {
  const auto by_count = model::present_if(counted);
  const auto by_time = model::present_if(!counted);
  return model::make_table<OffCpuChange>(
      std::move(title), std::move(key),
      {{{std::move(name), "name", ColumnType::name}, &OffCpuChange::name},
       {{"Blocked in", "call", ColumnType::name},
        [](const OffCpuChange& c) { return model::text_cell(c.call); },
        model::Presence::if_known},
       {{"Number", "baseline_per_unit", ColumnType::number, 3}, number_of(0), by_count},
       {{"candidate", "candidate_per_unit", ColumnType::number, 3}, number_of(1), by_count},
       {{"Baseline", "baseline_ns_per_unit", ColumnType::time, 3, counted}, time_of(0)},
       {{"Candidate", "candidate_ns_per_unit", ColumnType::time, 3, counted}, time_of(1)},
       {{"Change", "change_ns_per_unit", ColumnType::time, 3, true},
        [](const OffCpuChange& c) { return whole(c.ns_per_unit[1] - c.ns_per_unit[0]); }},
       {{"Number", "baseline_per_unit", ColumnType::number, 3, true}, number_of(0), by_time},
       {{"candidate", "candidate_per_unit", ColumnType::number, 3, true}, number_of(1), by_time},
       {{"Changed", "changed"}, [](const OffCpuChange& c) { return to_string(c.changed); }}},
      changes);
}

}  // namespace

std::string_view to_string(model::OffCpuChanged changed) {
  constexpr std::array<std::string_view, 6> kNames = {"longer", "shorter", "more often", "less often", "new", "gone"};
  return kNames.at(static_cast<std::size_t>(changed));
}

std::vector<Table> off_cpu_tables(const OffCpuChanges& changes) {
  std::array all = {table_of(fmt::format("Where threads were blocked in their work, time per {}", changes.per),
                             "blocked_functions", "Function", changes.functions, false),
                    table_of(fmt::format("Who ended waits in the work, number per {}", changes.per), "wakers",
                             "Woken by", changes.wakers, true),
                    table_of(fmt::format("Who had the CPUs that threads waited for, time per {}", changes.per),
                             "rivals", "Ran instead", changes.rivals, false)};
  std::vector<Table> tables;
  for (Table& table : all) {
    if (table.rows.empty()) continue;
    table.notes.emplace_back(kHowSure);
    tables.push_back(std::move(table));
  }
  return tables;
}

Table off_cpu_rows(const OffCpuChanges& changes) {
  struct Row {
    std::string_view what;
    const OffCpuChange* change;
  };
  std::vector<Row> rows;
  for (const auto& [what, list] :
       {std::pair(std::string_view("function"), &changes.functions),
        std::pair(std::string_view("waker"), &changes.wakers), std::pair(std::string_view("rival"), &changes.rivals)})
    for (const OffCpuChange& change : *list) rows.push_back({what, &change});
  return model::make_table<Row>(
      "Waits in the work", "off_cpu",
      {{{"What", "what"}, &Row::what},
       {{"Name", "name", ColumnType::name}, [](const Row& r) { return r.change->name; }},
       {{"Blocked in", "call", ColumnType::name}, [](const Row& r) { return r.change->call; }},
       {{"Per", "per"}, [&](const Row&) { return changes.per; }},
       {{"Baseline", "baseline_ns_per_unit"}, [](const Row& r) { return r.change->ns_per_unit[0]; }},
       {{"Candidate", "candidate_ns_per_unit"}, [](const Row& r) { return r.change->ns_per_unit[1]; }},
       {{"Baseline number", "baseline_per_unit"}, [](const Row& r) { return r.change->per_unit[0]; }},
       {{"Candidate number", "candidate_per_unit"}, [](const Row& r) { return r.change->per_unit[1]; }},
       {{"Changed", "changed"}, [](const Row& r) { return to_string(r.change->changed); }}},
      rows);
}

void write_off_cpu(JsonWriter& json, const OffCpuChanges& changes) {
  json.begin_object("off_cpu");
  json.member("per", changes.per);
  for (const auto& [name, list] : {std::pair(std::string_view("functions"), &changes.functions),
                                   std::pair(std::string_view("wakers"), &changes.wakers),
                                   std::pair(std::string_view("rivals"), &changes.rivals)}) {
    json.begin_array(name);
    for (const OffCpuChange& change : *list) {
      json.begin_object(JsonForm::line);
      json.member("name", change.name);
      json.member("call", change.call);
      json.member("ns_per_unit", change.ns_per_unit);
      json.member("per_unit", change.per_unit);
      json.member("changed", to_string(change.changed));
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace culprit::report
