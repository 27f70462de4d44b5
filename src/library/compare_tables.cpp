#include <culprit/compare_tables.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/error.h"
#include "library/compare.h"
#include "library/table_comparisons.h"

namespace culprit {

Result<bool> are_profile_tables(const std::vector<std::string>& baseline, const std::vector<std::string>& candidate) {
  const std::array sides = {&baseline, &candidate};
  for (const auto* side : sides)
    for (const std::string& path : *side)
      if (Status status = library::refuse_native_profile(path); !status) return status.error();
  if (std::ranges::all_of(sides, [](const std::vector<std::string>* side) {
        return !side->empty() && std::ranges::all_of(*side, library::is_profile_table);
      })) {
    if (baseline.size() != 1 || candidate.size() != 1)
      return usage_error("several profile tables on one side", "give one table for each side");
    return true;
  }
  for (const auto* side : sides)
    for (const std::string& path : *side)
      if (library::is_profile_table(path))
        return usage_error(fmt::format("'{}' is a profile table, the other side is a trace", path),
                           "give traces on both sides, or tables on both sides");
  return false;
}

Result<std::vector<ProcessComparison>> compare_tables(const std::string& baseline, const std::string& candidate,
                                                      const TableOptions& options) {
  for (const std::string* path : {&baseline, &candidate})
    if (Status status = library::refuse_native_profile(*path); !status) return status.error();
  if (options.history) return library::history_needs_traces();
  if (Status status = library::check_tolerance(options.tolerance); !status) return status.error();
  const auto files = library::pair_of_tables(baseline, candidate);
  if (!files) return files.error();
  if (Status status = library::refuse_options_of_traces(options); !status) return status.error();
  const auto cancelled = [&] { return options.task.stop.stop_requested(); };
  library::TableComparisons all;
  all.tolerance = options.tolerance;
  {
    const auto tables = library::read_pair(*files);
    if (!tables) return tables.error();
    if (cancelled()) return cancelled_error();
    library::compare_pair(*files, *tables, all);
  }
  if (cancelled()) return cancelled_error();
  library::note_same_table(*files, all);
  if (Status status = library::expect_comparisons(all, baseline); !status) return status.error();
  library::complete(all);
  std::vector<ProcessComparison> comparisons;
  for (std::size_t i = 0; i < all.compared.size(); ++i)
    comparisons.push_back({all.set.comparisons[i].base_name, library::comparison_of(std::move(all.compared[i]))});
  return comparisons;
}

}  // namespace culprit
