// Opens the files of a run, each once, side by side, and reads each as what it is.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "formats/load.h"
#include "formats/registry.h"

namespace culprit::formats {

enum class Wanted : std::uint8_t { trace, kernel_data };

/// What is in the files, in their order. Only traces when traces are wanted. Errors as of load_run().
Result<std::vector<KernelData>> load_files(const std::vector<std::string>& paths, Wanted wanted,
                                           const LoadOptions& options);

}  // namespace culprit::formats
