#include "report/whole_run_report.h"

#include <algorithm>
#include <array>
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
  double (*value)(const WholeRun&);
  bool is_time;
};

template <double WholeRun::*member>
double value_of(const WholeRun& run) {
  return run.*member;
}

/// Of a device, as its busy time is; without work on devices there is none.
double idle_of(const WholeRun& run) { return run.busy_ns > 0 ? std::max(0.0, run.wall_ns - run.busy_ns) : 0; }

constexpr std::array kNumbers = {Number{"recorded", "wall_ns", value_of<&WholeRun::wall_ns>, true},
                                 Number{"a device was busy", "busy_ns", value_of<&WholeRun::busy_ns>, true},
                                 Number{"a device was idle", "idle_ns", idle_of, true},
                                 Number{"in kernels", "kernel_ns", value_of<&WholeRun::kernel_ns>, true},
                                 Number{"kernels", "kernels", value_of<&WholeRun::kernels>, false},
                                 Number{"copies and fills", "copies", value_of<&WholeRun::copies>, false},
                                 Number{"operators", "operators", value_of<&WholeRun::operators>, false},
                                 Number{"calls to the device", "launches", value_of<&WholeRun::launches>, false}};

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
    if (number.value((*comparison.whole)[0]) > 0 || number.value((*comparison.whole)[1]) > 0) rows.push_back(number);
  if (rows.empty()) return {};
  const auto cell = [&](const Number& row, std::size_t side) -> Cell {
    const double value = row.value((*comparison.whole)[side]);
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
    json.member(number.key, std::array{number.value((*comparison.whole)[0]), number.value((*comparison.whole)[1])});
  json.end_object();
}

}  // namespace culprit::report
