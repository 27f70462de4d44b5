#include "kernels/launch_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <string>

#include "core/saturating.h"
#include "kernels/launch_identity.h"
#include "model/table_rows.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

using model::Cell;
using model::cell_of;
using model::ColumnType;
using model::KernelLaunch;
using model::KernelLog;
using model::known_cell;
using model::number_cell;
using model::Presence;
using model::Table;
using model::text_cell;

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

}  // namespace

Table name_table(const KernelLog& log, const NameTableOptions& options) {
  std::vector<NameSums> sums = sums_by_name(log);
  Ns total = 0;
  for (const NameSums& sum : sums) total = add_saturating(total, sum.total);
  const Roofline roof = roofline(log);
  const model::ComputeAxis axis = use_report(log, {options.low, 1}).axis;
  const auto known_flops = [](const NameSums& s) { return s.flops_time > 0 ? s.flops : model::kNoNumber; };
  const auto known_bytes = [](const NameSums& s) { return s.bytes_time > 0 ? s.bytes : model::kNoNumber; };
  using enum Presence;
  const std::size_t shown = options.limit > 0 ? std::min(sums.size(), options.limit) : sums.size();
  Table table = model::make_table<NameSums>(
      "Kernels by name", "kernels",
      {
          {{"Kernel", "name", ColumnType::name}, &NameSums::name},
          {{"Launches", "launches", ColumnType::count}, [](const NameSums& s) { return s.times.size(); }},
          {{"Time", "total_ns", ColumnType::time}, &NameSums::total},
          {{"Share", "share", ColumnType::percent, 2},
           [&](const NameSums& s) { return model::share_cell(s.total, total); }},
          {{"Mean", "mean_ns", ColumnType::time, 3, true},
           [](const NameSums& s) { return static_cast<double>(s.total) / static_cast<double>(s.times.size()); }},
          {{"Median", "median_ns", ColumnType::time, 3, true},
           [](const NameSums& s) { return stats::median(s.times); }},
          {{"Min", "min_ns", ColumnType::time, 3, true}, [](const NameSums& s) { return std::ranges::min(s.times); }},
          {{"Max", "max_ns", ColumnType::time, 3, true}, [](const NameSums& s) { return std::ranges::max(s.times); }},
          {{"SM", "sm", ColumnType::percent, 1}, [](const NameSums& s) { return number_cell(s.sm.mean()); }, if_known},
          {{"Tensor", "tensor", ColumnType::percent, 1},
           [](const NameSums& s) { return number_cell(s.tensor.mean()); },
           if_known},
          {{"DRAM", "dram", ColumnType::percent, 1},
           [](const NameSums& s) { return number_cell(s.dram.mean()); },
           if_known},
          {{"Class", "class", ColumnType::text},
           [&](const NameSums& s) {
             const model::UseClass use = use_class(s.compute.mean(), s.dram.mean(), options.low);
             return use == model::UseClass::unknown ? Cell() : cell_of(to_string(use, axis));
           },
           if_known},
          {{"FLOP/s", "flop_per_second", ColumnType::number, 0, true},
           [](const NameSums& s) { return number_cell(rate(s.flops, s.flops_time)); },
           if_known},
          {{"DRAM B/s", "dram_bytes_per_second", ColumnType::number, 0, true},
           [](const NameSums& s) { return number_cell(rate(s.bytes, s.bytes_time)); },
           if_known},
          {{"FLOP/B", "flop_per_byte", ColumnType::number, 2, true},
           [&](const NameSums& s) {
             return number_cell(s.bytes > 0 ? known_flops(s) / known_bytes(s) : model::kNoNumber);
           },
           if_known},
          {{"Roofline", "roofline", ColumnType::text, 3, true},
           [&](const NameSums& s) {
             return text_cell(std::string(roofline_side(known_flops(s), known_bytes(s), roof)));
           },
           if_known},
      },
      sums, options.limit);
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

Table launch_table(const KernelLog& log, const std::stop_token& stop) {
  const auto fraction = [](float KernelLaunch::*use) {
    // Two decimals in, two decimals out: the shortest float is what the source wrote.
    return [use](const KernelLaunch& k) { return number_cell(std::round(static_cast<double>(k.*use) * 1e6) / 1e6); };
  };
  const auto extent = [](const auto& size) {
    return size[0] != 0 ? cell_of(fmt::format("{}x{}x{}", size[0], size[1], size[2])) : Cell();
  };
  using enum Presence;
  return model::make_table<KernelLaunch>(
      "Launches", "launches",
      {{{"#", "launch", ColumnType::count}, [&](const KernelLaunch& k) { return &k - log.launches.data() + 1; }},
       {{"Kernel", "kernel", ColumnType::name}, [&](const KernelLaunch& k) { return log.names[k.name]; }},
       {{"Latency", "latency_ns", ColumnType::time}, &KernelLaunch::latency},
       {{"Tensor", "tensor", ColumnType::percent, 0}, fraction(&KernelLaunch::tensor), if_known},
       {{"DRAM", "dram", ColumnType::percent, 0}, fraction(&KernelLaunch::dram), if_known},
       {{"SM", "sm", ColumnType::percent, 0}, fraction(&KernelLaunch::sm), if_known},
       {{"Begin", "begin_ns", ColumnType::time, 3, true},
        [](const KernelLaunch& k) { return known_cell(k.begin); },
        if_known},
       {{"Grid", "grid", ColumnType::text, 3, true}, [=](const KernelLaunch& k) { return extent(k.grid); }, if_known},
       {{"Block", "block", ColumnType::text, 3, true},
        [=](const KernelLaunch& k) { return extent(k.block); },
        if_known},
       {{"Process", "process", ColumnType::count, 3, true},
        [](const KernelLaunch& k) { return known_cell(k.process); },
        if_known},
       {{"Device", "device", ColumnType::count, 3, true},
        [](const KernelLaunch& k) { return known_cell(k.device); },
        if_known},
       {{"Stream", "stream", ColumnType::count, 3, true},
        [](const KernelLaunch& k) { return known_cell(k.stream); },
        if_known}},
      log.launches | std::views::take_while([&](const KernelLaunch&) { return !stop.stop_requested(); }));
}

Table class_table(const model::UseReport& report) {
  struct Row {
    model::UseClass use;
    model::TimeAndCount sum;
  };
  std::vector<Row> rows;
  for (std::size_t c = 0; c < model::kUseClasses; ++c) {
    const auto use = static_cast<model::UseClass>(c);
    if (use != model::UseClass::unknown || report.classes[c].launches != 0) rows.push_back({use, report.classes[c]});
  }
  Table table = model::make_table<Row>(
      fmt::format("Time by class (low: below {:.0f} %)", report.low * 100), "classes",
      {{{"Class", "class"}, [&](const Row& row) { return to_string(row.use, report.axis); }},
       {{"Launches", "launches", ColumnType::count}, [](const Row& row) { return row.sum.launches; }},
       {{"Time", "time_ns", ColumnType::time}, [](const Row& row) { return row.sum.time; }},
       {{"Share", "share", ColumnType::percent, 2},
        [&](const Row& row) { return model::share_cell(row.sum.time, report.total); }}},
      rows);
  if (report.axis == model::ComputeAxis::tensor)
    table.notes.emplace_back(
        "SM use is not in this input: tensor pipe use stands in for it, so work of the other pipes counts as low");
  if (report.axis == model::ComputeAxis::none)
    table.notes.emplace_back("Neither SM nor tensor use is in this input: no class can be told");
  return table;
}

Table bin_table(const model::UseReport& report) {
  const std::string axis = report.axis == model::ComputeAxis::tensor ? "tensor" : "SM";
  const std::array<std::string, 3> names = {fmt::format("< {:.0f} %", report.low * 100),
                                            fmt::format("{:.0f} to {:.0f} %", report.low * 100, report.high * 100),
                                            fmt::format(">= {:.0f} %", report.high * 100)};
  const std::array<std::string, 3> keys = {"low", "middle", "high"};
  model::ColumnsOf<std::size_t> columns = {{{axis, "compute"}, [&](std::size_t c) { return names[c]; }}};
  for (std::size_t d = 0; d < 3; ++d)
    columns.push_back({{"DRAM " + names[d], "dram_" + keys[d], ColumnType::percent, 2}, [&report, d](std::size_t c) {
                         return model::share_cell(report.bins[c][d].time, report.total);
                       }});
  return model::make_table<std::size_t>(fmt::format("Share of time by {} (rows) and DRAM use (columns)", axis), "bins",
                                        columns, std::views::iota(std::size_t{0}, std::size_t{3}));
}

Table histogram_table(const model::UseReport& report) {
  struct Row {
    std::string axis;
    std::optional<double> from, to;
    Ns time;
  };
  std::vector<Row> bins;
  for (const model::UseHistogram& histogram : report.histograms) {
    const auto n = static_cast<double>(histogram.bins.size());
    for (std::size_t b = 0; b < histogram.bins.size(); ++b)
      bins.push_back({histogram.axis, static_cast<double>(b) / n, static_cast<double>(b + 1) / n, histogram.bins[b]});
    if (histogram.unknown > 0) bins.push_back({histogram.axis, std::nullopt, std::nullopt, histogram.unknown});
  }
  return model::make_table<Row>("Time by use", "distribution",
                                {{{"Measure", "measure"}, &Row::axis},
                                 {{"From", "from", ColumnType::percent, 0}, &Row::from},
                                 {{"To", "to", ColumnType::percent, 0}, &Row::to},
                                 {{"Time", "time_ns", ColumnType::time}, &Row::time},
                                 {{"Share", "share", ColumnType::percent, 2},
                                  [&](const Row& row) { return model::share_cell(row.time, report.total); }}},
                                bins);
}

}  // namespace culprit::kernels
