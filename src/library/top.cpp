#include <culprit/top.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cycles/find.h"
#include "library/columns.h"
#include "library/measure.h"
#include "library/run_data.h"
#include "summary/query_names.h"

namespace culprit {

namespace {

template <class Value>
Result<Value> named(const std::map<std::string, Value>& names, const std::string& name, std::string_view what) {
  if (const auto found = names.find(name); found != names.end()) return found->second;
  std::vector<std::string> all;
  all.reserve(names.size());
  for (const auto& [key, value] : names) all.push_back(key);
  return usage_error(fmt::format("'{}' is no {}", name, what), fmt::format("one of {}", fmt::join(all, ", ")));
}

}  // namespace

Result<Table> top(const Run& run, const TopOptions& options) {
  const Trace& trace = run.data().trace;
  const auto by = named(summary::kGroupNames, options.by, "group");
  if (!by) return by.error();
  const auto sort = named(summary::kSortNames, options.sort, "order");
  if (!sort) return sort.error();
  summary::FunctionQuery query;
  query.by = *by;
  query.filter = options.filter;
  query.stop = options.task.stop;
  query.classes = 0;
  for (const std::string& name :
       options.classes.empty() ? std::vector{summary::usual_classes(trace)} : options.classes) {
    const auto set = named(summary::kClassNames, name, "class");
    if (!set) return set.error();
    query.classes |= *set;
  }
  std::optional<cycles::Found> found;
  if (*by == summary::GroupBy::cycle || *by == summary::GroupBy::phase) {
    auto cycles = library::find(run, {.anchor = options.anchor, .task = options.task});
    if (!cycles) return cycles.error();
    found = std::move(*cycles);
    query.cycles = &*found;
  } else if (!options.anchor.empty()) {
    return usage_error("an anchor begins cycles, and this table has none", "group by cycle or phase");
  }
  profile::Nesting nesting;
  if ((query.classes & ~summary::kGpuWork) != 0) {
    if (options.task.stop.stop_requested()) return cancelled_error();
    nesting = profile::find_nesting(trace, options.task.stop);
    if (options.task.stop.stop_requested()) return cancelled_error();
    query.nesting = &nesting;
  }
  const summary::FunctionSums sums = summary::function_stats(trace, query);
  if (options.task.stop.stop_requested()) return cancelled_error();
  summary::FunctionTableOptions table;
  table.sort = *sort;
  table.reverse = options.reverse;
  table.limit = options.limit;
  return library::columns_of(summary::function_table(sums, table));
}

}  // namespace culprit
