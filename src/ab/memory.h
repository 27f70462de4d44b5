// Whether there is memory for both sides at once: two that swap measure the disk.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::ab {

/// Error: less than a fiftieth is left of the machine's memory, or of what a control group of one of these processes,
/// or one above it, may use. Pages of files count as free. `root` is put in front of /proc and /sys.
Status enough_memory(const std::vector<pid_t>& processes, const std::string& root = {});

}  // namespace culprit::ab
