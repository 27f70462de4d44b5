// Profile tables compared: what a profiler measured of each cycle, as CSV, without the trace that it is of.
#pragma once

#include <culprit/api.h>
#include <culprit/compare.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/task.h>

#include <cstdint>
#include <string>
#include <vector>

namespace culprit {

struct TableOptions {
  double tolerance = 0.03;  ///< relative change of the cycle time that does not matter, between 0 and 1
  Task task{};              ///< no progress is told
  // What only recordings have a use for, so that a program can hand on what its users gave: another value than these is
  // an error of usage that says so.
  std::string anchor{};
  unsigned threads = 0;
  std::uint64_t max_expansion = kUsualExpansion;
  bool history = false;  ///< earlier recordings were given
};

/// A process held against its partner: of the same number, or, where neither side has the other's, any of the other.
struct ProcessComparison {
  std::string name;  ///< as `culprit diff` calls it: "good.csv_vs_bad.csv_pid7_strict_comparison"
  Comparison comparison;
};

/// Whether the files of two sides are profile tables, which compare_tables() takes: by their names, which end in .csv.
/// Otherwise they are recordings (load_recordings()). Errors: usage, when only some are tables, when a side has
/// several, or when `culprit profile` wrote one of the files.
CULPRIT_API Result<bool> are_profile_tables(const std::vector<std::string>& baseline,
                                            const std::vector<std::string>& candidate);

/// Compares two tables as `culprit diff` does, as far as sums of each cycle tell it: there is no waterfall. At least
/// one comparison. Errors: usage, when the tolerance is no share, a path is a directory or an option of recordings is
/// given; input, when a table cannot be read, or the two have no process to compare.
CULPRIT_API Result<std::vector<ProcessComparison>> compare_tables(const std::string& baseline,
                                                                  const std::string& candidate,
                                                                  const TableOptions& options = {});

}  // namespace culprit
