// The events of a run as columns, for data frames: slices, samples of counters, marks, devices.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/table.h>
#include <culprit/task.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace culprit {

/// Texts that come again: each once, valid UTF-8.
struct Categories {
  std::vector<std::int32_t> codes;  ///< rows of `texts`; -1: none
  std::vector<std::string> texts;
};

struct FrameColumn {
  std::string key;  ///< with its unit: "begin_ns"
  std::variant<std::vector<std::int64_t>, std::vector<double>, Categories> values;
  bool has_none = false;  ///< whole numbers: -1 is not known
};

/// Columns of equal length.
struct Frame {
  std::string key;
  std::vector<FrameColumn> columns;
  std::size_t rows = 0;
};

/// In the order of the file: begin_ns (on the clock of the trace, as cycles), duration_ns, name, class ("kernel",
/// "cpu_op", ...), category (as in the file), thread, pid, tid, rank, device, stream, correlation, bytes.
/// When a stop is requested: without columns, as the others.
CULPRIT_API Frame slices(const Run& run, const Task& task = {});
/// One row per sample: at_ns, name, unit, pid, value, rank.
CULPRIT_API Frame counters(const Run& run, const Task& task = {});
/// Points in time: at_ns, name, pid, tid, rank.
CULPRIT_API Frame markers(const Run& run, const Task& task = {});
/// rank, device, name, memory_bytes, multiprocessors, compute_capability.
CULPRIT_API Frame devices(const Run& run);

}  // namespace culprit
