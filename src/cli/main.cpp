#include "cli/main.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/suggestion.h"
#include "core/escape.h"

namespace culprit::cli {

namespace {

void print_error(std::string_view message) {
  const std::string line = fmt::format("culprit: {}\n", escape_terminal(message));
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

int fail(const Error& error) {
  print_error(to_string(error));
  return static_cast<int>(error.kind);
}

int print(std::string_view text) {
  const Status status = write_output({}, text);
  return status ? kFine : fail(status.error());
}

/// A program started with a closed standard descriptor must not get an input file under that number.
void occupy_standard_descriptors() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    // Read-only, so that writing to a closed standard output is still an error.
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

int help(const ProgramText& program, const std::string& verb) {
  const auto chosen = std::ranges::find(program.verbs, verb, &VerbText::name);
  return print(chosen == program.verbs.end() ? help_text(program) : help_text(program, *chosen));
}

int parse_and_run(std::vector<std::string> arguments) {
  CommandLine command_line;
  Invocation invocation;
  const ProgramText program = declare(command_line, invocation);

  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<std::size_t>(arguments.size(), 1));
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      std::ranges::find(program.verbs, arguments.front(), &VerbText::name) == program.verbs.end()) {
    std::vector<std::string> verbs;
    verbs.reserve(program.verbs.size());
    for (const VerbText& verb : program.verbs) verbs.push_back(verb.name);
    return fail(usage_error(fmt::format("unknown verb '{}'", arguments.front()),
                            suggestion(arguments.front(), verbs, "see 'culprit --help'")));
  }
  if (!arguments.empty() && (arguments.front() == "record" || arguments.front() == "ab")) {
    // What stands behind "--" is a program with options of its own.
    const auto mark = std::ranges::find(arguments, "--");
    if (mark != arguments.end()) {
      invocation.command.assign(mark + 1, arguments.end());
      arguments.erase(mark, arguments.end());
    }
  }
  const auto parsed = command_line.parse(std::move(arguments));
  if (!parsed) return fail(parsed.error());
  if (parsed->wants == Parsed::Wants::help) return help(program, parsed->verb);
  if (parsed->wants == Parsed::Wants::version) return print(fmt::format("{} {}\n", program.name, program.version));
  if (!invocation.run) return fail(usage_error("no verb given", "see 'culprit --help'"));
  const Result<int> code = invocation.run();
  return code ? *code : fail(code.error());
}

}  // namespace

ProgramText declare(CommandLine& command_line, Invocation& invocation) {
  add_info(command_line, invocation);
  add_top(command_line, invocation);
  add_cycles(command_line, invocation);
  add_kernels(command_line, invocation);
  add_export(command_line, invocation);
  add_diff(command_line, invocation);
  add_diagnose(command_line, invocation);
  add_profile(command_line, invocation);
  add_record(command_line, invocation);
  add_ab(command_line, invocation);
  add_inject(command_line, invocation);
  add_doctor(command_line, invocation);
  ProgramText program;
  program.name = "culprit";
  program.version = CULPRIT_VERSION;
  program.description = "Culprit reads traces of GPU workloads, measures every step, and names what made it slow.";
  program.options = command_line.options();
  program.verbs = command_line.verbs();
  program.footer =
      "'culprit VERB --help' or 'culprit help VERB' explains a verb.\n\n"
      "Exit codes:\n  0  fine\n  1  a difference (only with --fail-on)\n  2  bad usage\n  3  bad input\n"
      "  4  missing permission or device\n  5  not comparable, or undecided (only with --fail-on)\n";
  return program;
}

int run(int argc, const char* const* argv) {
  occupy_standard_descriptors();
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));  // a file that may not grow is seen when writing
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));  // a reader that has gone away is seen when writing
  try {
    return parse_and_run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    return fail(environment_error("out of memory", "", "use a machine with more memory, or fewer files"));
  } catch (const std::exception& error) {
    return fail(environment_error(fmt::format("internal error: {}", error.what()), "", "please report it"));
  }
}

}  // namespace culprit::cli
