#include "cli/main.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <numeric>

#include "cli/cli.h"
#include "cli/output.h"
#include "core/escape.h"

namespace culprit::cli {

namespace {

constexpr const char* kVersion = CULPRIT_VERSION;

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

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// "did you mean 'X'?" for the nearest of `known`, or `otherwise`.
std::string suggestion(std::string_view text, const std::vector<std::string>& known, std::string otherwise) {
  constexpr std::size_t kLongest = 64;
  if (text.size() > kLongest) return otherwise;
  std::size_t best = std::max<std::size_t>(1, text.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest.empty() ? otherwise : fmt::format("did you mean '{}'?", nearest);
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

Error usage_of(const CLI::ParseError& error, const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App* verb = chosen.empty() ? nullptr : chosen.front();
  const std::string help =
      verb != nullptr ? fmt::format("see 'culprit {} --help'", verb->get_name()) : std::string("see 'culprit --help'");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto extras = app.remaining(true);
    const std::string first = extras.empty() ? std::string() : extras.front();
    if (first.starts_with('-'))
      return usage_error(fmt::format("unknown option '{}'", first),
                         suggestion(first.substr(0, first.find('=')), options_of(verb != nullptr ? *verb : app), help));
    return usage_error(fmt::format("unexpected argument '{}'", first), help);
  }
  std::string what = error.what();
  if (const std::size_t end = what.find('\n'); end != std::string::npos) what.resize(end);
  return usage_error(what, help);
}

/// A program started with a closed standard descriptor must not get an input file under that number.
void occupy_standard_descriptors() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    // Read-only, so that writing to a closed standard output is still an error.
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

int parse_and_run(std::vector<std::string> arguments) {
  CLI::App app("Culprit reads traces of GPU workloads, measures every step, and names what made it slow.", "culprit");
  Invocation invocation;
  app.set_version_flag("--version", fmt::format("culprit {}", kVersion));
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(32);
  app.footer(
      "'culprit VERB --help' or 'culprit help VERB' explains a verb.\n\n"
      "Exit codes:\n  0  fine\n  2  bad usage\n  3  bad input\n"
      "  4  missing right or device\n  5  undecided (only with --fail-on)");
  add_info(app, invocation);
  add_top(app, invocation);
  add_cycles(app, invocation);
  add_kernels(app, invocation);
  add_export(app, invocation);
  add_diff(app, invocation);
  add_profile(app, invocation);
  add_record(app, invocation);
  add_inject(app, invocation);
  add_doctor(app, invocation);

  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<std::size_t>(arguments.size(), 1));
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && !arguments.front().starts_with('-')) {
    const auto verbs = verbs_of(app);
    if (std::ranges::find(verbs, arguments.front()) == verbs.end())
      return fail(usage_error(fmt::format("unknown verb '{}'", arguments.front()),
                              suggestion(arguments.front(), verbs, "see 'culprit --help'")));
  }
  if (!arguments.empty() && arguments.front() == "record") {
    // What stands behind "--" is a program with options of its own.
    const auto mark = std::ranges::find(arguments, "--");
    if (mark != arguments.end()) {
      invocation.command.assign(mark + 1, arguments.end());
      arguments.erase(mark, arguments.end());
    }
  }
  try {
    std::ranges::reverse(arguments);  // the parser takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return print(chosen.empty() ? app.help() : chosen.front()->help("culprit"));
  } catch (const CLI::CallForVersion& version) {
    return print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return fail(usage_of(error, app));
  }
  if (!invocation.run) return fail(usage_error("no verb given", "see 'culprit --help'"));
  const Result<int> code = invocation.run();
  return code ? *code : fail(code.error());
}

}  // namespace

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
