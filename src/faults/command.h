// Programs such as tc and nvidia-smi are run with an argument list, never through a shell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace culprit::faults {

struct CommandOutcome {
  int exit_code = 0;  ///< 128 + N when signal N ended it
  std::string text;   ///< standard output and standard error together, the first 64 KiB
};

/// Where `name` is installed: the folders of PATH, then /usr/sbin and /sbin. Nothing when it is not.
std::optional<std::string> find_program(std::string_view name);

/// Runs argv[0] (an absolute path) with an empty input and waits for it; it is killed after 30 s. `own_network` gives
/// it a network namespace of its own, in which nothing it does reaches the machine. Error: it cannot be started.
Result<CommandOutcome> run_command(const std::vector<std::string>& argv, bool own_network = false);

}  // namespace culprit::faults
