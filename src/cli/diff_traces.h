// The part of `culprit diff` that begins with traces instead of profile tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "model/comparison.h"

namespace culprit::cli {

struct TraceSides {
  std::vector<std::string> base;  ///< traces, or directories of them
  std::vector<std::string> candidate;
  std::string anchor;
  unsigned threads = 0;
};

struct TraceComparison {
  std::optional<std::string> not_comparable;  ///< what differs; then `set` is empty
  model::ComparisonSet set;
};

/// Loads both sides, finds and measures their cycles and compares phase by phase and process by process. Files of one
/// side that carry different rank numbers are the ranks of one run, other files are recordings of the same run again.
Result<TraceComparison> compare_traces(const TraceSides& sides);

/// True when the path names a profile table by its ending.
bool is_profile_table(const std::string& path);

}  // namespace culprit::cli
