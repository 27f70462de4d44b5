// The part of `culprit diff` that begins with traces instead of profile tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "compare/comparable.h"
#include "compare/run_facts.h"
#include "core/error.h"
#include "deepdive/comparison.h"

namespace culprit::cli {

struct TraceSides {
  std::vector<std::string> base;  ///< traces, or directories of them
  std::vector<std::string> candidate;
  std::string anchor;
  LoadChoice load;
};

/// A number of both sides that may be looked at though the runs are not comparable.
struct SideBySide {
  std::string what;
  std::string base;
  std::string candidate;
};

struct TraceComparison {
  std::optional<compare::Refusal> not_comparable;  ///< then `set` holds at most `host`
  std::vector<compare::Difference> differences;    ///< of the runs as such
  std::vector<SideBySide> side_by_side;            ///< only when not comparable
  deepdive::ComparisonSet set;
};

/// Loads both sides, finds and measures their cycles and compares phase by phase and process by process. Files of one
/// side that carry different rank numbers are the ranks of one run, other files are recordings of the same run again.
Result<TraceComparison> compare_traces(const TraceSides& sides);

/// True when the path names a profile table by its ending.
bool is_profile_table(const std::string& path);

}  // namespace culprit::cli
