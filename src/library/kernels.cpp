#include "library/kernels.h"

#include <culprit/kernels.h>

#include <utility>
#include <variant>
#include <vector>

#include "formats/load.h"
#include "kernels/blocks.h"
#include "kernels/classes.h"
#include "kernels/fusion.h"
#include "kernels/launch_identity.h"
#include "kernels/launch_tables.h"
#include "kernels/trace_log.h"
#include "library/columns.h"
#include "library/load.h"
#include "library/run_data.h"
#include "summary/function_stats.h"
#include "summary/function_table.h"

namespace culprit {

namespace library {

namespace {

Result<model::KernelLog> launches_in(const Trace& trace, const std::string& path) {
  model::KernelLog log = kernels::kernel_log_of(trace);
  if (log.launches.empty())
    return input_error("holds no kernel", path, "give a trace with GPU work, of PyTorch's profiler or Nsight");
  return log;
}

/// Errors: as launches_in(); cancelled.
Result<model::KernelLog> launches_in(const Run& run, const Task& task) {
  if (task.stop.stop_requested()) return cancelled_error();
  auto log = launches_in(run.data().trace, path_of(run));
  if (task.stop.stop_requested()) return cancelled_error();
  return log;
}

/// The table, unless a stop was requested while it was made.
Result<Table> whole(Table table, const Task& task) {
  if (task.stop.stop_requested()) return cancelled_error();
  return table;
}

Result<Kernels> tables_of(const model::KernelLog& log, const Task& task) {
  Kernels tables;
  tables.launches = columns_of(kernels::launch_table(log, task.stop), task.stop);
  if (!task.stop.stop_requested()) tables.names = columns_of(kernels::name_table(log, {}));
  if (!task.stop.stop_requested()) tables.classes = columns_of(kernels::class_table(kernels::use_report(log, {})));
  if (task.stop.stop_requested()) return cancelled_error();
  return tables;
}

std::vector<model::LaneBlocks> blocks_of(const model::KernelLog& log, std::vector<model::Lane> lanes,
                                         const Task& task) {
  const kernels::LaunchIds ids = kernels::launch_ids(log);
  std::vector<model::LaneBlocks> blocks;
  blocks.reserve(lanes.size());
  for (model::Lane& lane : lanes) {
    if (task.stop.stop_requested()) break;
    blocks.push_back(kernels::find_blocks(log, std::move(lane), ids, {.stop = task.stop}));
  }
  return blocks;
}

}  // namespace

Result<formats::KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto data = formats::load_kernel_data(paths, load_options(options));
  if (options.task.stop.stop_requested()) return cancelled_error();
  return data;
}

Result<model::KernelLog> launches_of(formats::KernelData data, const std::string& path) {
  if (auto* log = std::get_if<model::KernelLog>(&data)) return std::move(*log);
  if (const auto* trace = std::get_if<Trace>(&data)) return launches_in(*trace, path);
  return input_error("has one row per name and no launches", path, "give a launch log or a trace");
}

}  // namespace library

Result<Kernels> kernels_of(const Run& run, const Task& task) {
  const auto log = library::launches_in(run, task);
  if (!log) return log.error();
  return library::tables_of(*log, task);
}

Result<Kernels> kernels_of(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto data = library::load_kernel_data(paths, options);
  if (!data) return data.error();
  const auto log = library::launches_of(std::move(*data), paths.front());
  if (!log) return log.error();
  return library::tables_of(*log, options.task);
}

Result<Table> kernel_blocks(const Run& run, const Task& task) {
  const auto log = library::launches_in(run, task);
  if (!log) return log.error();
  const auto blocks = library::blocks_of(*log, kernels::lanes_of(*log), task);
  if (task.stop.stop_requested()) return cancelled_error();
  return library::whole(library::columns_of(kernels::block_table(*log, blocks), task.stop), task);
}

Result<Table> fusion_candidates(const Run& run, const Task& task) {
  const auto log = library::launches_in(run, task);
  if (!log) return log.error();
  std::vector<model::Lane> lanes = kernels::lanes_of(*log);
  const model::FusionReport report = kernels::fusion_report(*log, lanes, {});
  if (task.stop.stop_requested()) return cancelled_error();
  const auto blocks = library::blocks_of(*log, std::move(lanes), task);
  if (task.stop.stop_requested()) return cancelled_error();
  return library::whole(library::columns_of(kernels::fusion_table(*log, report, blocks, 0), task.stop), task);
}

Table function_times(const Run& run) {
  return library::columns_of(summary::function_table(summary::function_stats(run.data().trace, {}), {}));
}

}  // namespace culprit
