#include "summary/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/saturating.h"
#include "core/units.h"

namespace culprit::summary {

namespace {

using model::Cell;
using model::ColumnType;

double measure(const FunctionStats& f, SortBy sort) {
  switch (sort) {
    case SortBy::time:
      return static_cast<double>(f.self);
    case SortBy::calls:
      return static_cast<double>(f.calls);
    case SortBy::average:
      return f.mean;
    case SortBy::min:
      return static_cast<double>(f.min);
    case SortBy::median:
      return f.median;
    case SortBy::max:
      return static_cast<double>(f.max);
    case SortBy::name:
      break;
  }
  return 0;
}

std::vector<std::size_t> ordered(const std::vector<FunctionStats>& functions, const FunctionTableOptions& options) {
  std::vector<std::size_t> rows(functions.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::ranges::sort(rows, [&](std::size_t a, std::size_t b) {
    const FunctionStats& x = functions[a];
    const FunctionStats& y = functions[b];
    if (options.sort == SortBy::name) {
      if (x.position != y.position) return (x.position < y.position) != options.reverse;
      if (x.label != y.label) return (x.label < y.label) != options.reverse;
    } else {
      const double p = measure(x, options.sort);
      const double q = measure(y, options.sort);
      if (p != q) return (p > q) != options.reverse;
      if (x.self != y.self) return x.self > y.self;
      if (x.label != y.label) return x.label < y.label;
    }
    return a < b;
  });
  return rows;
}

void add_columns(model::Table& table, const FunctionTableOptions& options) {
  const bool full = options.columns == Columns::full;
  const std::string& who = options.processor;
  const auto titled = [&](const char* plain, const char* profiler) {
    return full ? std::string(plain) : who + " " + profiler;
  };
  table.columns = {{options.heading, options.heading_key, ColumnType::name, 0},
                   {full ? "Time" : "Self " + who, "self_ns", ColumnType::time, 3},
                   {full ? "Share" : "Self " + who + " %", "share", ColumnType::percent, 2},
                   {titled("Total", "total"), "total_ns", ColumnType::time, 3},
                   {titled("Average", "time avg"), "average_ns", ColumnType::time, 3}};
  if (options.columns != Columns::profiler)
    table.columns.insert(table.columns.end(), {{titled("Min", "min"), "min_ns", ColumnType::time, 3, true},
                                               {titled("Median", "median"), "median_ns", ColumnType::time, 3, true},
                                               {titled("Max", "max"), "max_ns", ColumnType::time, 3, true},
                                               {titled("Stddev", "stddev"), "stddev_ns", ColumnType::time, 3, true}});
  table.columns.push_back({full ? "Calls" : "# of Calls", "calls", ColumnType::count, 0});
}

/// Whole nanoseconds as an integer, so that JSON and CSV show no needless fraction.
Cell ns_cell(double ns) {
  const auto whole = static_cast<std::int64_t>(ns);
  if (static_cast<double>(whole) == ns) return whole;
  return ns;
}

}  // namespace

model::Table function_table(const FunctionSums& sums, const FunctionTableOptions& options) {
  model::Table table;
  table.title = options.title;
  table.key = options.key;
  add_columns(table, options);
  const auto rows = ordered(sums.functions, options);
  const std::size_t shown = options.limit == 0 ? rows.size() : std::min(options.limit, rows.size());
  Ns hidden = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const FunctionStats& f = sums.functions[rows[r]];
    if (r >= shown) {
      hidden = add_saturating(hidden, f.self);
      continue;
    }
    // Nothing took any time: there is no share to speak of.
    const Cell share = sums.self > 0 ? Cell(static_cast<double>(f.self) / static_cast<double>(sums.self)) : Cell();
    std::vector<Cell> row = {f.label, f.self, share, f.total, ns_cell(f.mean)};
    if (options.columns != Columns::profiler) {
      const Cell deviation = f.calls > 1 ? ns_cell(f.deviation) : Cell();
      row.insert(row.end(), {f.min, ns_cell(f.median), f.max, deviation});
    }
    row.emplace_back(static_cast<std::int64_t>(f.calls));
    table.rows.push_back(std::move(row));
  }
  if (options.note_total)
    table.notes.push_back(fmt::format("Self {} time total: {}", options.processor, format_duration(sums.self)));
  if (shown < rows.size()) {
    const double share = sums.self > 0 ? static_cast<double>(hidden) / static_cast<double>(sums.self) * 100 : 0;
    table.notes.push_back(fmt::format("{} more rows with {} ({:.2f}%) are not shown; --limit 0 shows all",
                                      format_count(rows.size() - shown), format_duration(hidden), share));
  }
  return table;
}

}  // namespace culprit::summary
