#include "kernels/launch_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "core/saturating.h"
#include "kernels/launch_identity.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

using model::Cell;
using model::Column;
using model::ColumnType;
using model::KernelLaunch;
using model::KernelLog;
using model::Table;

Cell number_or_empty(double value) { return std::isnan(value) ? Cell() : Cell(value); }

Cell share_of(Ns part, Ns total) {
  return total > 0 ? Cell(static_cast<double>(part) / static_cast<double>(total)) : Cell();
}

/// A mean weighted by time, of the launches that know the value.
struct Weighted {
  double sum = 0;
  double weight = 0;
  void add(double value, Ns time) {
    if (std::isnan(value)) return;
    sum += value * static_cast<double>(time);
    weight += static_cast<double>(time);
  }
  [[nodiscard]] double mean() const { return weight > 0 ? sum / weight : model::kNoNumber; }
};

struct NameSums {
  std::string name;
  std::vector<Ns> times;
  Ns total = 0;
  Weighted tensor, sm, compute, dram;
  double flops = 0;
  double bytes = 0;
  Ns flops_time = 0;
  Ns bytes_time = 0;
};

std::vector<NameSums> sums_by_name(const KernelLog& log) {
  std::map<std::string, std::size_t> rows;
  std::vector<std::size_t> row_of(log.names.size(), 0);
  std::vector<NameSums> sums;
  for (const KernelLaunch& launch : log.launches) {
    if (row_of[launch.name] == 0) {
      const auto [at, fresh] = rows.try_emplace(std::string(log.names[launch.name]), sums.size());
      if (fresh) sums.push_back({at->first, {}, 0, {}, {}, {}, {}, 0, 0, 0, 0});
      row_of[launch.name] = at->second + 1;
    }
    NameSums& sum = sums[row_of[launch.name] - 1];
    sum.times.push_back(launch.latency);
    sum.total = add_saturating(sum.total, launch.latency);
    sum.tensor.add(static_cast<double>(launch.tensor), launch.latency);
    sum.sm.add(static_cast<double>(launch.sm), launch.latency);
    sum.compute.add(compute_use(launch), launch.latency);
    sum.dram.add(static_cast<double>(launch.dram), launch.latency);
    if (!std::isnan(launch.flops)) {
      sum.flops += launch.flops;
      sum.flops_time = add_saturating(sum.flops_time, launch.latency);
    }
    if (!std::isnan(launch.dram_bytes)) {
      sum.bytes += launch.dram_bytes;
      sum.bytes_time = add_saturating(sum.bytes_time, launch.latency);
    }
  }
  std::ranges::stable_sort(sums, [](const NameSums& a, const NameSums& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return sums;
}

double rate(double work, Ns time) { return time > 0 ? work / (static_cast<double>(time) * 1e-9) : model::kNoNumber; }

/// Columns with a function per cell; empty ones are dropped.
struct Spec {
  Column column;
  std::function<Cell(const NameSums&)> cell;
  bool always = false;
};

void drop_empty_columns(Table& table, const std::vector<bool>& always) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    const auto empty = [c](const std::vector<Cell>& row) { return std::holds_alternative<std::monostate>(row[c]); };
    if (always[c] || !std::ranges::all_of(table.rows, empty)) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

}  // namespace

Table name_table(const KernelLog& log, const NameTableOptions& options) {
  std::vector<NameSums> sums = sums_by_name(log);
  Ns total = 0;
  for (const NameSums& sum : sums) total = add_saturating(total, sum.total);
  const Roofline roof = roofline(log);
  const model::ComputeAxis axis = use_report(log, {options.low, 1}).axis;
  const auto count = [](std::size_t n) { return Cell(static_cast<std::int64_t>(n)); };
  const auto known_flops = [](const NameSums& s) { return s.flops_time > 0 ? s.flops : model::kNoNumber; };
  const auto known_bytes = [](const NameSums& s) { return s.bytes_time > 0 ? s.bytes : model::kNoNumber; };
  const std::vector<Spec> specs = {
      {{"Kernel", "name", ColumnType::name}, [](const NameSums& s) { return Cell(s.name); }, true},
      {{"Launches", "launches", ColumnType::count}, [&](const NameSums& s) { return count(s.times.size()); }, true},
      {{"Time", "total_ns", ColumnType::time}, [](const NameSums& s) { return Cell(s.total); }, true},
      {{"Share", "share", ColumnType::percent, 2}, [&](const NameSums& s) { return share_of(s.total, total); }, true},
      {{"Mean", "mean_ns", ColumnType::time, 3, true},
       [](const NameSums& s) { return Cell(static_cast<double>(s.total) / static_cast<double>(s.times.size())); },
       true},
      {{"Median", "median_ns", ColumnType::time, 3, true},
       [&](const NameSums& s) { return Cell(stats::median(s.times)); },
       true},
      {{"Min", "min_ns", ColumnType::time, 3, true},
       [](const NameSums& s) { return Cell(std::ranges::min(s.times)); },
       true},
      {{"Max", "max_ns", ColumnType::time, 3, true},
       [](const NameSums& s) { return Cell(std::ranges::max(s.times)); },
       true},
      {{"SM", "sm", ColumnType::percent, 1}, [](const NameSums& s) { return number_or_empty(s.sm.mean()); }},
      {{"Tensor", "tensor", ColumnType::percent, 1},
       [](const NameSums& s) { return number_or_empty(s.tensor.mean()); }},
      {{"DRAM", "dram", ColumnType::percent, 1}, [](const NameSums& s) { return number_or_empty(s.dram.mean()); }},
      {{"Class", "class", ColumnType::text},
       [&](const NameSums& s) {
         const model::UseClass use = use_class(s.compute.mean(), s.dram.mean(), options.low);
         return use == model::UseClass::unknown ? Cell() : Cell(std::string(to_string(use, axis)));
       }},
      {{"FLOP/s", "flop_per_second", ColumnType::number, 0, true},
       [&](const NameSums& s) { return number_or_empty(rate(s.flops, s.flops_time)); }},
      {{"DRAM B/s", "dram_bytes_per_second", ColumnType::number, 0, true},
       [&](const NameSums& s) { return number_or_empty(rate(s.bytes, s.bytes_time)); }},
      {{"FLOP/B", "flop_per_byte", ColumnType::number, 2, true},
       [&](const NameSums& s) {
         return number_or_empty(s.bytes > 0 ? known_flops(s) / known_bytes(s) : model::kNoNumber);
       }},
      {{"Roofline", "roofline", ColumnType::text, 3, true},
       [&](const NameSums& s) {
         const std::string_view side = roofline_side(known_flops(s), known_bytes(s), roof);
         return side.empty() ? Cell() : Cell(std::string(side));
       }},
  };
  Table table;
  table.title = "Kernels by name";
  table.key = "kernels";
  std::vector<bool> always;
  for (const Spec& spec : specs) {
    table.columns.push_back(spec.column);
    always.push_back(spec.always);
  }
  std::size_t shown = sums.size();
  if (options.limit > 0) shown = std::min(shown, options.limit);
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<Cell> row;
    for (const Spec& spec : specs) row.push_back(spec.cell(sums[i]));
    table.rows.push_back(std::move(row));
  }
  drop_empty_columns(table, always);
  table.notes.push_back(
      fmt::format("{} launches, {} in all", format_count(log.launches.size()), format_duration(total)));
  if (shown < sums.size()) {
    Ns rest = 0;
    for (std::size_t i = shown; i < sums.size(); ++i) rest = add_saturating(rest, sums[i].total);
    table.notes.push_back(fmt::format("{} more names, {}", sums.size() - shown, format_duration(rest)));
  }
  if (log.names_cut) table.notes.emplace_back("The source cuts long names: one row may hold several kernels");
  if (!std::isnan(roof.ridge()))
    table.notes.push_back(
        fmt::format("Roofline estimated from work, time and use of the launches: {:.3g} FLOP/s, {:.3g} "
                    "B/s, ridge at {:.1f} FLOP/B",
                    roof.flops_per_second, roof.bytes_per_second, roof.ridge()));
  return table;
}

Table launch_table(const KernelLog& log) {
  Table table;
  table.title = "Launches";
  table.key = "launches";
  table.columns = {{"#", "launch", ColumnType::count},
                   {"Kernel", "kernel", ColumnType::name},
                   {"Latency", "latency_ns", ColumnType::time},
                   {"Tensor", "tensor", ColumnType::percent, 0},
                   {"DRAM", "dram", ColumnType::percent, 0},
                   {"SM", "sm", ColumnType::percent, 0},
                   {"Begin", "begin_ns", ColumnType::time, 3, true},
                   {"Grid", "grid", ColumnType::text, 3, true},
                   {"Block", "block", ColumnType::text, 3, true},
                   {"Process", "process", ColumnType::count, 3, true},
                   {"Device", "device", ColumnType::count, 3, true},
                   {"Stream", "stream", ColumnType::count, 3, true}};
  const auto fraction = [](float value) {
    // Two decimals in, two decimals out: the shortest float is what the source wrote.
    return std::isnan(value) ? Cell() : Cell(std::round(static_cast<double>(value) * 1e6) / 1e6);
  };
  const auto id = [](std::int64_t value) { return value < 0 ? Cell() : Cell(value); };
  const auto extent = [](const auto(&size)[3]) {
    Cell cell;
    if (size[0] != 0) cell = fmt::format("{}x{}x{}", size[0], size[1], size[2]);
    return cell;
  };
  std::int64_t number = 0;
  for (const KernelLaunch& launch : log.launches)
    table.rows.push_back({++number, std::string(log.names[launch.name]), launch.latency, fraction(launch.tensor),
                          fraction(launch.dram), fraction(launch.sm), id(launch.begin), extent(launch.grid),
                          extent(launch.block), id(launch.process), id(launch.device), id(launch.stream)});
  std::vector<bool> always(table.columns.size(), false);
  std::fill_n(always.begin(), 3, true);
  drop_empty_columns(table, always);
  return table;
}

Table class_table(const model::UseReport& report) {
  Table table;
  table.title = fmt::format("Time by class (low: below {:.0f} %)", report.low * 100);
  table.key = "classes";
  table.columns = {{"Class", "class", ColumnType::text},
                   {"Launches", "launches", ColumnType::count},
                   {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2}};
  for (std::size_t c = 0; c < model::kUseClasses; ++c) {
    const model::TimeAndCount& sum = report.classes[c];
    const auto use = static_cast<model::UseClass>(c);
    if (use == model::UseClass::unknown && sum.launches == 0) continue;
    table.rows.push_back({std::string(to_string(use, report.axis)), static_cast<std::int64_t>(sum.launches), sum.time,
                          share_of(sum.time, report.total)});
  }
  if (report.axis == model::ComputeAxis::tensor)
    table.notes.emplace_back(
        "SM use is not in this input: tensor pipe use stands in for it, so work of the other pipes counts as low");
  if (report.axis == model::ComputeAxis::none)
    table.notes.emplace_back("Neither SM nor tensor use is in this input: no class can be told");
  return table;
}

Table bin_table(const model::UseReport& report) {
  Table table;
  const std::string axis = report.axis == model::ComputeAxis::tensor ? "tensor" : "SM";
  table.title = fmt::format("Share of time by {} (rows) and DRAM use (columns)", axis);
  table.key = "bins";
  const std::array<std::string, 3> names = {fmt::format("< {:.0f} %", report.low * 100),
                                            fmt::format("{:.0f} to {:.0f} %", report.low * 100, report.high * 100),
                                            fmt::format(">= {:.0f} %", report.high * 100)};
  const std::array<std::string, 3> keys = {"low", "middle", "high"};
  table.columns.push_back({axis, "compute", ColumnType::text});
  for (std::size_t d = 0; d < 3; ++d)
    table.columns.push_back({"DRAM " + names[d], "dram_" + keys[d], ColumnType::percent, 2});
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<Cell> row = {names[c]};
    for (std::size_t d = 0; d < 3; ++d) row.push_back(share_of(report.bins[c][d].time, report.total));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table histogram_table(const model::UseReport& report) {
  Table table;
  table.title = "Time by use";
  table.key = "distribution";
  table.columns = {{"Measure", "measure", ColumnType::text},
                   {"From", "from", ColumnType::percent, 0},
                   {"To", "to", ColumnType::percent, 0},
                   {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2}};
  for (const model::UseHistogram& histogram : report.histograms) {
    const auto n = static_cast<double>(histogram.bins.size());
    for (std::size_t b = 0; b < histogram.bins.size(); ++b)
      table.rows.push_back({histogram.axis, static_cast<double>(b) / n, static_cast<double>(b + 1) / n,
                            histogram.bins[b], share_of(histogram.bins[b], report.total)});
    if (histogram.unknown > 0)
      table.rows.push_back(
          {histogram.axis, Cell(), Cell(), histogram.unknown, share_of(histogram.unknown, report.total)});
  }
  return table;
}

}  // namespace culprit::kernels
