// `culprit ab`: two commands, or two programs that run, in turns until it is known whether they differ.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ab/commands.h"
#include "ab/conclude.h"
#include "ab/turns.h"
#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/durations.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process_choice.h"
#include "core/escape.h"
#include "core/text.h"
#include "record/signals.h"
#include "report/alternation_report.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

struct AbVerbOptions {
  DiffOptions report;
  std::string detect = "5%";
  std::string budget = "10m";
  std::size_t pairs = 0;
  std::size_t warm_up = 1;
  std::string turns = "500ms";
  std::vector<std::string> processes;
  bool versus = false;
  std::string on = "auto";
  std::string preset = "watch";
  bool no_record = false;
  bool fresh_directory = false;
  bool any_user = false;
  std::string keep;
  std::uint64_t seed = 0;
  bool quiet = false;
};

std::string share_problem(const std::string& text) {
  const auto share = parse_share(text);
  return share && *share > 0 && *share < 1 ? "" : fmt::format("'{}' is no share between 0 and 1: 5% or 0.05", text);
}

void say(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

/// "A --vs -- B" as both commands.
Result<std::array<std::vector<std::string>, 2>> commands_of(const std::vector<std::string>& words) {
  const std::array<std::string, 2> mark = {"--vs", "--"};
  const auto found = std::ranges::search(words, mark);
  if (found.empty())
    return usage_error("there is no second command", "culprit ab -- COMMAND ARGUMENTS --vs -- OTHER ARGUMENTS");
  std::array<std::vector<std::string>, 2> commands = {std::vector(words.begin(), found.begin()),
                                                      std::vector(found.end(), words.end())};
  if (commands[0].empty() || commands[1].empty())
    return usage_error("one of the commands is empty", "culprit ab -- COMMAND ARGUMENTS --vs -- OTHER ARGUMENTS");
  return commands;
}

/// A folder for what both sides leave behind; removed at the end unless the user named it.
class Folder {
 public:
  static Result<Folder> make(const std::string& keep) {
    if (!keep.empty()) {
      std::error_code code;
      if (fs::exists(keep, code) && !fs::is_empty(keep, code))
        return usage_error(fmt::format("'{}' exists and is not empty", keep), "give a new folder to --keep");
      fs::create_directories(keep, code);
      if (code) return environment_error(code.message(), keep, "choose another folder with --keep");
      fs::permissions(keep, fs::perms::owner_all, code);
      return Folder(fs::absolute(keep).string(), false);
    }
    std::string name = (fs::temp_directory_path() / "culprit-ab-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      return environment_error(errno_text(errno), name, "set TMPDIR to a folder with room");
    return Folder(name, true);
  }
  Folder(Folder&& other) noexcept : path_(std::move(other.path_)), removed_(std::exchange(other.removed_, false)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code code;
    if (removed_) fs::remove_all(path_, code);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Folder(std::string path, bool removed) : path_(std::move(path)), removed_(removed) {}
  std::string path_;
  bool removed_;
};

std::string progress_line(const ab::Progress& progress) {
  const std::string last = progress.last ? report::change_text(*progress.last) : std::string();
  return fmt::format("{} pairs in {:.0f} s ({:.0f} % of what is allowed){}", progress.pairs,
                     static_cast<double>(progress.elapsed) / 1e9, progress.share * 100,
                     last.empty() ? "" : fmt::format(": {}", last));
}

ab::ProgressSink progress_of(bool quiet) {
  if (quiet) return {};
  if (isatty(STDERR_FILENO) != 0)
    return [](const ab::Progress& progress) { say("\r\x1b[K" + progress_line(progress)); };
  // In a log a line for each look.
  return [told = std::string()](const ab::Progress& progress) mutable {
    const std::string last = progress.last ? report::change_text(*progress.last) : std::string();
    if (last == told) return;
    told = last;
    say(fmt::format("culprit: {}\n", progress_line(progress)));
  };
}

Result<ab::Question> question_of(const AbVerbOptions& options, const std::string& folder) {
  ab::Question question;
  question.detect = parse_share(options.detect).value_or(question.detect);
  const auto budget = parse_duration(options.budget);
  if (!budget || *budget <= 0)
    return usage_error(fmt::format("invalid budget '{}'", options.budget), "write it like 10m, 90s or 1h");
  question.budget = *budget;
  question.pairs = options.pairs;
  question.seed = options.seed != 0 ? options.seed : std::random_device()();
  question.preset = options.preset == "deep" ? record::Preset::deep : record::Preset::watch;
  question.recorded = !options.no_record;
  question.folder = folder;
  question.version = CULPRIT_VERSION;
  return question;
}

Result<ab::Alternated> alternate_commands(const AbVerbOptions& options, const std::vector<std::string>& words,
                                          const ab::Question& question, int stop_fd) {
  auto commands = commands_of(words);
  if (!commands) return commands.error();
  ab::Commands plan;
  plan.commands = std::move(*commands);
  plan.warm_up = options.warm_up;
  plan.own_directories = options.fresh_directory;
  plan.quantity = options.on == "step"  ? ab::Quantity::step
                  : options.on == "run" ? ab::Quantity::run
                  : options.on == "cpu" ? ab::Quantity::cpu
                                        : ab::Quantity::automatic;
  if (plan.quantity == ab::Quantity::step && options.no_record)
    return usage_error("--on step needs recordings", "leave out --no-record");
  return ab::alternate(plan, question, stop_fd, progress_of(options.quiet));
}

Result<ab::Alternated> alternate_processes(const AbVerbOptions& options, const ab::Question& question, int stop_fd) {
  if (options.processes.size() != 2)
    return usage_error(fmt::format("{} processes are named", options.processes.size()),
                       "name both sides: culprit ab -p PID --vs -p PID");
  ab::TurnsPlan plan;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto pid = choose_process(options.processes[side]);
    if (!pid) return pid.error();
    plan.sides[side] = static_cast<pid_t>(*pid);
  }
  const auto length = parse_duration(options.turns);
  constexpr Ns kShortest = 50'000'000;
  if (!length || *length < kShortest)
    return usage_error(fmt::format("invalid turns '{}'", options.turns), "write them like 500ms, at least 50ms");
  plan.length = *length;
  plan.any_user = options.any_user;
  return ab::alternate(plan, question, stop_fd, progress_of(options.quiet));
}

Result<int> run_ab(const AbVerbOptions& options, const std::vector<std::string>& words) {
  if (options.processes.empty() == words.empty())
    return usage_error(words.empty() ? "nothing to compare" : "both processes and commands are given",
                       "give two commands, -- A --vs -- B, or two processes, -p PID --vs -p PID");
  auto folder = Folder::make(options.keep);
  if (!folder) return folder.error();
  const auto question = question_of(options, folder->path());
  if (!question) return question.error();
  auto signals = record::StopSignals::take();
  if (!signals) return signals.error();
  auto alternated = words.empty() ? alternate_processes(options, *question, signals->fd())
                                  : alternate_commands(options, words, *question, signals->fd());
  if (!options.quiet && isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
  if (!alternated) return alternated.error();
  const model::RunComparison comparison = ab::conclude(*alternated);
  DiffOptions report = options.report;
  if (report.format == "markdown") report.format = "md";
  return deliver_comparison(report, comparison);
}

}  // namespace

void add_ab(CommandLine& app, Invocation& invocation) {
  auto options = std::make_shared<AbVerbOptions>();
  Verb* verb = app.add_subcommand("ab", "run two commands or programs in turns: does one take longer?");
  verb->add_option("-p,--pid", options->processes, "a process that runs, by id or name; twice, with --vs between them")
      ->type_name("PID|NAME");
  verb->add_flag("--vs", options->versus, "what follows is the candidate, what stands before the baseline");
  verb->add_option("--detect", options->detect, "the difference that matters, as 5% or 0.05 (default: 5%)")
      ->check({share_problem, {}})
      ->type_name("SHARE");
  verb->add_option("--budget", options->budget, "end after this time at the latest (default: 10m)")->type_name("TIME");
  verb->add_option("-n,--pairs", options->pairs, "run so many pairs, and look at them once; else it ends when it knows")
      ->type_name("N");
  verb->add_option("--warmup", options->warm_up, "pairs of runs before those that count (default: 1)")->type_name("N");
  verb->add_option("--turns", options->turns,
                   "of processes: how long one runs while the other stands still (default: 500ms)")
      ->type_name("TIME");
  verb->add_option(
          "--on", options->on,
          "what is compared: auto (default: the time of a step, where the programs have such, else of the run), "
          "step, run (time of the whole run) or cpu (CPU time of the run)")
      ->check(one_of({"auto", "step", "run", "cpu"}));
  verb->add_option("--preset", options->preset, "how runs are recorded: watch (default) or deep (docs/record.md)")
      ->check(one_of({"watch", "deep"}));
  verb->add_flag("--no-record", options->no_record, "commands are only timed: nothing says where a difference is");
  verb->add_flag("--fresh-directory", options->fresh_directory, "each run begins in an empty directory of its own");
  verb->add_option("--keep", options->keep, "keep recordings and what the runs printed in this new folder")
      ->type_name("DIR");
  verb->add_flag("--any-user", options->any_user, "root: also processes of other users are made to stand still");
  verb->add_option("--seed", options->seed, "of the lots that draw the order in each pair (default: by chance)")
      ->type_name("N");
  verb->add_option("--fail-on", options->report.fail_on, "as of 'culprit diff'")
      ->check(one_of({"regression", "any", "difference", "inconclusive", "not_comparable"}));
  verb->add_option("--format", options->report.format, "terminal, markdown, csv or json")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json"}));
  verb->add_flag("--wide", options->report.wide, "terminal: names up to 100 columns, however wide that gets");
  verb->add_flag("--json", options->report.json, "short for --format json, on standard output");
  verb->add_option("-o,--output", options->report.output, "write to PATH, as 'culprit diff' does")->type_name("PATH");
  add_force_option(*verb, options->report.force);
  verb->add_flag("-q,--quiet", options->quiet, "no progress");
  verb->usage({"-- COMMAND [ARGUMENT...] --vs -- COMMAND [ARGUMENT...]", "-p PID --vs -p PID"});
  verb->footer(
      help_footer("culprit ab -- ./old/bench --vs -- ./new/bench\n"
                  "  culprit ab --detect 2% --budget 30m --fail-on regression -- make -C a --vs -- make -C b\n"
                  "  culprit ab -p 4711 --vs -p 4712 --budget 2m"));
  verb->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return run_ab(*options, invocation.command); };
  });
}

}  // namespace culprit::cli
