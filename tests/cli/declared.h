// The program's verbs and options as it declares them.
#pragma once

#include "cli/cli.h"

namespace culprit::cli {

inline ProgramText declared() {
  CommandLine command_line;
  Invocation invocation;
  return declare(command_line, invocation);
}

}  // namespace culprit::cli
