// Kernels: their sums over a run, and the launches one by one.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/table.h>
#include <culprit/task.h>

#include <string>
#include <vector>

namespace culprit {

struct Kernels {
  Table launches;  ///< every launch in order, with the use of compute and memory where it is known
  Table names;     ///< one row per name
  Table classes;   ///< time by use: low compute, low memory, both, neither
};

/// Errors: input, when the run has no kernels; cancelled.
CULPRIT_API Result<Kernels> kernels_of(const Run& run, const Task& task = {});

/// The same from files of one capture, which may be traces, launch logs or Nsight Compute's CSV. Errors: as load_run();
/// input, when they hold no launches.
CULPRIT_API Result<Kernels> kernels_of(const std::vector<std::string>& paths, const LoadOptions& options = {});

/// Stretches of launches that repeat (layers, micro-batches, steps). Error: as kernels_of().
CULPRIT_API Result<Table> kernel_blocks(const Run& run, const Task& task = {});
/// Neighbours that could be one kernel. Error: as kernels_of().
CULPRIT_API Result<Table> fusion_candidates(const Run& run, const Task& task = {});

/// Time of GPU work per function, longest first: calls, total, share, average, min, median, max.
CULPRIT_API Table function_times(const Run& run);

}  // namespace culprit
