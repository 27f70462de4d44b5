// What files tell of kernels, for the public calls and for `culprit kernels`, which also shows tables without launches.
#pragma once

#include <culprit/load.h>

#include <string>
#include <vector>

#include "formats/registry.h"
#include "model/kernel_log.h"

namespace culprit::library {

/// Errors: as load_run(); files of different kinds.
Result<formats::KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options);

/// The launches in it. Error: input, when there is none; `path` is where it came from.
Result<model::KernelLog> launches_of(formats::KernelData data, const std::string& path);

}  // namespace culprit::library
