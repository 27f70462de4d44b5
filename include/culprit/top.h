// Where the time went, by function and by other groups: the table of `culprit top`.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/table.h>
#include <culprit/task.h>

#include <cstddef>
#include <string>
#include <vector>

namespace culprit {

struct TopOptions {
  /// name, raw-name, short-name, kind, device, stream, rank, category, cycle or phase.
  std::string by = "name";
  /// gpu, kernels, cpu_op, runtime, python, annotation, functions, sched, syscall or all; empty: what suits the run.
  std::vector<std::string> classes{};
  std::string filter{};       ///< `*` or `?`: a pattern for the whole name, else anywhere in it; empty: all
  std::string sort = "time";  ///< time, calls, avg, min, median, max or name
  bool reverse = false;
  std::size_t limit = 0;  ///< rows; 0: all
  std::string anchor{};   ///< of cycles, as CycleOptions::anchor; only by cycle or phase
  Task task{};
};

/// Errors: usage, for a word that is none of these; cancelled.
CULPRIT_API Result<Table> top(const Run& run, const TopOptions& options = {});

}  // namespace culprit
