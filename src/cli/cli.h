// The verbs of the command line. Each verb is one file with one function that declares its options on `app` and stores
// what to run; main() parses, runs it and turns its result into the exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "core/error.h"

namespace culprit::cli {

/// Exit codes beyond those of ErrorKind.
inline constexpr int kFine = 0;
inline constexpr int kDifference = 1;  ///< only with --fail-on
inline constexpr int kUndecided = 5;   ///< only with --fail-on

/// What the chosen verb wants to run; set by the verb's callback.
struct Invocation {
  std::function<Result<int>()> run;
  std::vector<std::string> command;  ///< what stood behind "--" of `record` and `ab`
};

void add_info(CommandLine& app, Invocation& invocation);
void add_top(CommandLine& app, Invocation& invocation);
void add_cycles(CommandLine& app, Invocation& invocation);
void add_export(CommandLine& app, Invocation& invocation);
void add_kernels(CommandLine& app, Invocation& invocation);
void add_diff(CommandLine& app, Invocation& invocation);
void add_diagnose(CommandLine& app, Invocation& invocation);
void add_profile(CommandLine& app, Invocation& invocation);
void add_record(CommandLine& app, Invocation& invocation);
void add_ab(CommandLine& app, Invocation& invocation);
void add_inject(CommandLine& app, Invocation& invocation);
void add_doctor(CommandLine& app, Invocation& invocation);

/// Declares all verbs, and says what the program says of itself.
ProgramText declare(CommandLine& command_line, Invocation& invocation);

}  // namespace culprit::cli
