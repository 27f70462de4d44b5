// Profile tables compared, for the public call and for `culprit diff`, which shows the ranking of the reference, too.
#pragma once

#include <culprit/compare_tables.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "deepdive/comparison.h"
#include "deepdive/pairing.h"
#include "deepdive/perf_csv.h"
#include "deepdive/profile.h"
#include "model/comparison.h"

namespace culprit::library {

/// All comparisons of one call.
struct TableComparisons {
  deepdive::ComparisonSet set;
  std::vector<model::RunComparison> compared;  ///< each of its comparisons as traces are
  std::set<std::string> names;                 ///< of their files
  double tolerance = 0;
  bool same = false;  ///< both sides are one table
};

using TablePair = std::array<deepdive::Profile, 2>;

/// By the ending of its name.
bool is_profile_table(const std::string& path);

/// Error: usage, `culprit profile -o` wrote it, which cannot be compared; says what can.
Status refuse_native_profile(const std::string& input);

/// Options that tables have no use for must not seem to do something. Error: usage, one is given. The history is not
/// looked at.
Status refuse_options_of_traces(const TableOptions& options);
Error history_needs_traces();

/// Numbers as the reference reads them.
deepdive::PerfCsvOptions reference_decimals();

/// Named after both files.
deepdive::FilePair pair_of(const std::filesystem::path& base, const std::filesystem::path& candidate);
/// Of two tables. Error: usage, one is a directory.
Result<deepdive::FilePair> pair_of_tables(const std::string& base, const std::string& candidate);

/// Both tables of a pair, read at the same time.
Result<TablePair> read_pair(const deepdive::FilePair& files);

/// Adds a comparison of each process with its partner, and says who has none.
void compare_pair(const deepdive::FilePair& files, const TablePair& tables, TableComparisons& all);

/// Says so when both files of the only pair are one table.
void note_same_table(const deepdive::FilePair& files, TableComparisons& all);

/// Error: input, there is no comparison; `base` is where the baseline came from.
Status expect_comparisons(const TableComparisons& all, const std::string& base);

/// Adds to each comparison what the tables leave out and who has no partner, and the outcome of one table on both
/// sides. Once, when all pairs have been compared.
void complete(TableComparisons& all);

}  // namespace culprit::library
