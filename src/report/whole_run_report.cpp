#include "report/whole_run_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "model/table_rows.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::WholeRun;

/// A number of WholeRun, its name for people and, with its unit, in JSON.
struct Number {
  std::string_view what;
  std::string_view key;
  double WholeRun::*value;
  bool is_time;
};

constexpr std::array kNumbers = {Number{"recorded", "wall_ns", &WholeRun::wall_ns, true},
                                 Number{"a device was busy", "busy_ns", &WholeRun::busy_ns, true},
                                 Number{"in kernels", "kernel_ns", &WholeRun::kernel_ns, true},
                                 Number{"kernels", "kernels", &WholeRun::kernels, false},
                                 Number{"copies and fills", "copies", &WholeRun::copies, false},
                                 Number{"operators", "operators", &WholeRun::operators, false},
                                 Number{"calls to the device", "launches", &WholeRun::launches, false}};

bool is_decided(const model::RunComparison& comparison) {
  if (comparison.work || comparison.same_recording) return true;
  return comparison.outcome != model::Outcome::not_comparable && comparison.why.empty() &&
         std::ranges::any_of(comparison.cycle_times, model::is_judged);
}

}  // namespace

std::vector<model::Table> whole_run_tables(const model::RunComparison& comparison) {
  if (!comparison.whole || is_decided(comparison)) return {};
  std::vector<Number> rows;
  for (const Number& number : kNumbers)
    if ((*comparison.whole)[0].*number.value > 0 || (*comparison.whole)[1].*number.value > 0) rows.push_back(number);
  if (rows.empty()) return {};
  const auto cell = [&](const Number& row, std::size_t side) -> Cell {
    const double value = (*comparison.whole)[side].*row.value;
    return row.is_time ? Cell(value / 1e6) : Cell(value);
  };
  model::Table table = model::make_table<Number>(
      "The whole recordings", "whole_run",
      {{{"Number", "what", ColumnType::name}, [](const Number& row) { return std::string(row.what); }},
       {{"Unit", "unit"}, [](const Number& row) { return std::string(row.is_time ? "ms" : ""); }},
       {{"Baseline", "baseline", ColumnType::number, 3}, [&](const Number& row) { return cell(row, 0); }},
       {{"Candidate", "candidate", ColumnType::number, 3}, [&](const Number& row) { return cell(row, 1); }}},
      rows);
  table.notes.emplace_back("Side by side: they may hold other work, and nothing follows from that.");
  std::vector<model::Table> tables;
  tables.push_back(std::move(table));
  return tables;
}

void write_whole_run(JsonWriter& json, const model::RunComparison& comparison) {
  if (!comparison.whole) return;
  json.begin_object("whole_run");
  for (const Number& number : kNumbers)
    json.member(number.key, std::array{(*comparison.whole)[0].*number.value, (*comparison.whole)[1].*number.value});
  json.end_object();
}

}  // namespace culprit::report
