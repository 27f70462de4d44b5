#include "summary/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "core/saturating.h"
#include "core/units.h"
#include "model/table_rows.h"

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

/// Whole nanoseconds as an integer, so that JSON and CSV show no needless fraction.
Cell ns_cell(double ns) {
  const auto whole = static_cast<std::int64_t>(ns);
  if (static_cast<double>(whole) == ns) return whole;
  return ns;
}

model::ColumnsOf<FunctionStats> columns_of(const FunctionSums& sums, const FunctionTableOptions& options) {
  const bool full = options.columns == Columns::full;
  const auto spread = model::present_if(options.columns != Columns::profiler);
  const std::string& who = options.device;
  const auto titled = [&](const char* plain, const char* profiler) {
    return full ? std::string(plain) : who + " " + profiler;
  };
  return {
      {{options.heading, options.heading_key, ColumnType::name, 0}, &FunctionStats::label},
      {{full ? "Time" : "Self " + who, "self_ns", ColumnType::time, 3}, &FunctionStats::self},
      // Where nothing took any time there is no share to speak of.
      {{full ? "Share" : "Self " + who + " %", "share", ColumnType::percent, 2},
       [&](const FunctionStats& f) { return model::share_cell(f.self, sums.self); }},
      {{titled("Total", "total"), "total_ns", ColumnType::time, 3}, &FunctionStats::total},
      {{titled("Average", "time avg"), "average_ns", ColumnType::time, 3},
       [](const FunctionStats& f) { return ns_cell(f.mean); }},
      {{titled("Min", "min"), "min_ns", ColumnType::time, 3, true}, &FunctionStats::min, spread},
      {{titled("Median", "median"), "median_ns", ColumnType::time, 3, true},
       [](const FunctionStats& f) { return ns_cell(f.median); },
       spread},
      {{titled("Max", "max"), "max_ns", ColumnType::time, 3, true}, &FunctionStats::max, spread},
      {{titled("Stddev", "stddev"), "stddev_ns", ColumnType::time, 3, true},
       [](const FunctionStats& f) { return f.calls > 1 ? ns_cell(f.deviation) : Cell(); },
       spread},
      {{full ? "Calls" : "# of Calls", "calls", ColumnType::count, 0}, &FunctionStats::calls},
  };
}

}  // namespace

model::Table function_table(const FunctionSums& sums, const FunctionTableOptions& options) {
  const auto rows = ordered(sums.functions, options);
  const auto function = [&](std::size_t row) -> const FunctionStats& { return sums.functions[row]; };
  model::Table table = model::make_table<FunctionStats>(options.title, options.key, columns_of(sums, options),
                                                        rows | std::views::transform(function), options.limit);
  const std::size_t shown = table.rows.size();
  Ns hidden = 0;
  for (std::size_t r = shown; r < rows.size(); ++r) hidden = add_saturating(hidden, function(rows[r]).self);
  if (options.note_total)
    table.notes.push_back(fmt::format("Self {} time total: {}", options.device, format_duration(sums.self)));
  if (shown < rows.size()) {
    const double share = sums.self > 0 ? static_cast<double>(hidden) / static_cast<double>(sums.self) * 100 : 0;
    table.notes.push_back(fmt::format("{} more rows with {} ({:.2f}%) are not shown; --limit 0 shows all",
                                      format_count(rows.size() - shown), format_duration(hidden), share));
  }
  return table;
}

}  // namespace culprit::summary
