// The verbs of the command line. Each verb is one file with one function that declares its options on `app` and stores
// what to run; main() parses, runs it and turns its result into the exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
}

namespace culprit::cli {

/// Exit codes beyond those of ErrorKind.
inline constexpr int kFine = 0;
inline constexpr int kDifference = 1;  ///< only with --fail-on
inline constexpr int kUndecided = 5;   ///< only with --fail-on

/// What the chosen verb wants to run; set by the verb's callback.
struct Invocation {
  std::function<Result<int>()> run;
  std::vector<std::string> command;  ///< what stood behind "--" of `record`
};

void add_info(CLI::App& app, Invocation& invocation);
void add_top(CLI::App& app, Invocation& invocation);
void add_cycles(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_kernels(CLI::App& app, Invocation& invocation);
void add_diff(CLI::App& app, Invocation& invocation);
void add_profile(CLI::App& app, Invocation& invocation);
void add_record(CLI::App& app, Invocation& invocation);
void add_inject(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);

}  // namespace culprit::cli
