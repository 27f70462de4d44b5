// The table of `culprit top`: functions in order of a measure, cut to what fits, saying what was cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/table.h"
#include "summary/function_stats.h"

namespace culprit::summary {

enum class SortBy : std::uint8_t { time, calls, average, min, median, max, name };

/// Which columns the table has.
enum class Columns : std::uint8_t {
  full,            ///< time, share, total, average, min, median, max, deviation, calls
  profiler,        ///< headings and columns of a profiler's summary: self, self %, total, average, calls
  profiler_stats,  ///< the same with min, median, max, deviation
};

struct FunctionTableOptions {
  SortBy sort = SortBy::time;
  bool reverse = false;   ///< smallest first (names: last first)
  std::size_t limit = 0;  ///< rows; 0 = all
  Columns columns = Columns::full;
  std::string title = {};
  std::string key = "functions";
  std::string heading = "Name";  ///< of the first column
  std::string heading_key = "name";
  std::string device = "CUDA";  ///< whose time it is, in the headings of the profiler columns
  bool note_total = false;      ///< notes the self time of everything selected
};

/// Rows in order of `options.sort` (numbers largest first, names A to Z, cycles by number; ties: time, then name).
/// Share is of the self time of everything selected, so that it adds up to 1 when nothing is filtered out. A cut table
/// notes rows and time not shown.
model::Table function_table(const FunctionSums& sums, const FunctionTableOptions& options);

}  // namespace culprit::summary
