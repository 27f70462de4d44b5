// `culprit ab`: two commands, or two programs that run, in turns until it is known whether they differ.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ab/commands.h"
#include "ab/conclude.h"
#include "ab/servers.h"
#include "ab/starts.h"
#include "ab/turns.h"
#include "cli/ab_pictures.h"
#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/durations.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process_choice.h"
#include "cli/python_functions.h"
#include "core/escape.h"
#include "core/file.h"
#include "core/output_file.h"
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
  std::optional<std::size_t> warm_up;
  std::string turns;
  std::string ready;
  std::string load;
  std::size_t starts = 0;
  std::vector<std::string> processes;
  bool versus = false;
  std::string on = "auto";
  std::string preset;
  bool no_record = false;
  bool no_realtime = false;
  std::vector<std::string> python;
  bool fresh_directory = false;
  bool any_user = false;
  std::string keep;
  std::uint64_t seed = 0;
  bool quiet = false;
  bool last = false;
};

void show(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

using TwoCommands = std::array<std::vector<std::string>, 2>;

/// "A --vs -- B" as both commands.
Result<TwoCommands> commands_of(const std::vector<std::string>& words) {
  const std::array<std::string, 2> mark = {"--vs", "--"};
  const auto found = std::ranges::search(words, mark);
  if (found.empty())
    return usage_error("there is no second command", "culprit ab -- COMMAND ARGUMENTS --vs -- OTHER ARGUMENTS");
  TwoCommands commands = {std::vector(words.begin(), found.begin()), std::vector(found.end(), words.end())};
  if (commands[0].empty() || commands[1].empty())
    return usage_error("one of the commands is empty", "culprit ab -- COMMAND ARGUMENTS --vs -- OTHER ARGUMENTS");
  return commands;
}

constexpr std::string_view kFolderName = "culprit-ab-";
constexpr const char* kFolderMark = ".made-by-culprit-ab";  // in what the next run may remove

/// Locked as long as this process or one of its recorders lives; -1: somebody else's, or there is none.
int lock_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat facts {};
  if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

void mark_folder(const std::string& path) {
  const std::string mark = (fs::path(path) / kFolderMark).string();
  const int fd = open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
}

bool is_marked(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(fs::symlink_status(folder / kFolderMark, code));
}

/// Folders of runs that were killed; those of the last minute may not be locked yet.
void remove_left_behind(const fs::path& where) {
  std::error_code code;
  for (fs::directory_iterator entry(where, code), end; !code && entry != end; entry.increment(code)) {
    std::error_code ignored;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry->path(), ignored);
    if (!entry->path().filename().string().starts_with(kFolderName) || age < std::chrono::minutes(1)) continue;
    if (!is_marked(entry->path())) continue;
    const int fd = lock_folder(entry->path().string());
    if (fd < 0) continue;
    fs::remove_all(entry->path(), ignored);
    close(fd);
  }
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
      const std::string path = fs::absolute(keep).string();
      return Folder(path, false, lock_folder(path));
    }
    std::error_code code;
    const fs::path temporary = fs::temp_directory_path(code);
    if (code) return environment_error("TMPDIR is no folder", "", "set TMPDIR to a folder with room");
    remove_left_behind(temporary);
    std::string name = (temporary / fmt::format("{}XXXXXX", kFolderName)).string();
    if (mkdtemp(name.data()) == nullptr)
      return environment_error(errno_text(errno), name, "set TMPDIR to a folder with room");
    // Where nothing can be locked, nothing is taken for left behind.
    const int lock = lock_folder(name);
    mark_folder(name);
    return Folder(name, true, lock);
  }
  Folder(Folder&& other) noexcept
      : path_(std::move(other.path_)),
        removed_(std::exchange(other.removed_, false)),
        lock_(std::exchange(other.lock_, -1)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code code;
    if (removed_) fs::remove_all(path_, code);
    if (lock_ >= 0) close(lock_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Folder(std::string path, bool removed, int lock) : path_(std::move(path)), removed_(removed), lock_(lock) {}
  std::string path_;
  bool removed_;
  int lock_;
};

/// Where the last result is kept; empty: nowhere.
std::string last_folder() {
  const auto of = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const std::string state = of("XDG_STATE_HOME"); !state.empty()) return state + "/culprit";
  const std::string home = of("HOME");
  return home.empty() ? "" : home + "/.local/state/culprit";
}

constexpr std::array<const char*, 5> kLastFormats = {"terminal", "md", "csv", "json", "html"};

std::string last_file(const std::string& folder, std::string_view format) {
  return fmt::format("{}/last-ab.{}", folder, format == "terminal" ? "txt" : format);
}

/// For --last. What cannot be kept is not shown again: no reason to fail.
void keep_last(const model::RunComparison& comparison, std::span<const model::RunPicture> pictures) {
  const std::string folder = last_folder();
  if (folder.empty()) return;
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return;
  for (const char* const format : kLastFormats) {
    auto file = OutputFile::create(last_file(folder, format), {.mode = kPrivateMode, .replace = true});
    if (!file) return;
    DiffOptions options;
    options.format = format;
    const std::string text = comparison_text(options, comparison, "ab", pictures);
    if (!text.empty() && file->write(text)) static_cast<void>(file->commit());
  }
}

Result<int> show_last(const DiffOptions& report) {
  const std::string format = report.json             ? "json"
                             : report.html           ? "html"
                             : report.format.empty() ? "terminal"
                                                     : report.format;
  if (format == "html")
    if (Status status = check_page_target(report.output); !status) return status.error();
  const std::string file = last_file(last_folder(), format);
  const auto text = read_file(file);
  if (!text) return input_error("there is no last result", file, "run culprit ab");
  if (Status status = write_report(report.output.empty() ? "-" : report.output, *text, report.force); !status)
    return status.error();
  return kFine;
}

std::string progress_line(const ab::Progress& progress) {
  const std::string last = progress.last ? report::change_text(*progress.last) : std::string();
  return fmt::format("{} pairs in {:.0f} s ({:.0f} % of what is allowed){}", progress.pairs,
                     static_cast<double>(progress.elapsed) / 1e9, progress.share * 100,
                     last.empty() ? "" : fmt::format(": {}", last));
}

/// What a side printed before it failed.
void show_printed(const std::string& lines) {
  if (isatty(STDERR_FILENO) != 0) show("\r\x1b[K");  // over the progress
  for (const std::string_view line : split_lines(lines)) show(fmt::format("  {}\n", escape_terminal(line)));
}

ab::ProgressSink progress_of(bool quiet) {
  if (quiet) return {};
  if (isatty(STDERR_FILENO) != 0)
    return [](const ab::Progress& progress) { show("\r\x1b[K" + progress_line(progress)); };
  // In a log a line for each look.
  return [told = std::string()](const ab::Progress& progress) mutable {
    const std::string last = progress.last ? report::change_text(*progress.last) : std::string();
    if (last == told) return;
    told = last;
    show(fmt::format("culprit: {}\n", progress_line(progress)));
  };
}

/// As --on names it; nullopt: it names none.
std::optional<ab::Quantity> quantity_of(const std::string& text) {
  using enum ab::Quantity::Kind;
  for (const auto& [name, kind] : {std::pair("auto", automatic), std::pair("step", step), std::pair("run", run),
                                   std::pair("cpu", cpu), std::pair("throughput", throughput)})
    if (text == name) return ab::Quantity{kind};
  for (const auto& [prefix, kind] :
       {std::pair(std::string_view("function:"), function), std::pair(std::string_view("kernel:"), function),
        std::pair(std::string_view("calls:"), calls), std::pair(std::string_view("bytes:"), bytes),
        std::pair(std::string_view("counter:"), counter)})
    if (text.starts_with(prefix) && text.size() > prefix.size()) return ab::Quantity{kind, text.substr(prefix.size())};
  // "host.cpu.busy": no other name has a dot.
  if (text.find('.') != std::string::npos && text.find(':') == std::string::npos) return ab::Quantity{counter, text};
  return std::nullopt;
}

std::string quantity_problem(const std::string& text) {
  return quantity_of(text)
             ? ""
             : fmt::format(
                   "'{}' is none of auto, step, run, cpu, throughput, function:NAME, kernel:NAME, calls:NAME, "
                   "bytes:NAME, counter:NAME",
                   text);
}

Result<ab::Question> question_of(const AbVerbOptions& options, const std::string& folder,
                                 std::array<std::string, 2> sides, bool of_commands) {
  ab::Question question;
  question.quantity = quantity_of(options.on).value_or(question.quantity);
  question.detect = parse_share(options.detect).value_or(question.detect);
  const auto budget = parse_duration(options.budget);
  if (!budget || *budget <= 0)
    return usage_error(fmt::format("invalid budget '{}'", options.budget), "write it like 10m, 90s or 1h");
  question.budget = *budget;
  question.pairs = options.pairs;
  question.seed = options.seed != 0 ? options.seed : std::random_device()();
  // Runs of commands are short: of those 'watch' sees too little; of counters it sees one sample a second.
  const bool counter = question.quantity.kind == ab::Quantity::Kind::counter;
  const bool deep = options.preset.empty() ? of_commands || counter : options.preset == "deep";
  question.prompt = !options.no_realtime;
  question.preset = deep ? record::Preset::deep : record::Preset::watch;
  question.recorded = !options.no_record;
  question.kept = !options.keep.empty();
  auto functions = python_functions(options.python);
  if (!functions) return functions.error();
  question.functions = std::move(*functions);
  question.folder = folder;
  question.version = CULPRIT_VERSION;
  question.sides = std::move(sides);
  question.printed = show_printed;
  return question;
}

Result<ab::Alternated> alternate_commands(const AbVerbOptions& options, TwoCommands commands,
                                          const ab::Question& question, int stop_fd) {
  ab::Commands plan;
  plan.commands = std::move(commands);
  plan.warm_up = options.warm_up.value_or(plan.warm_up);
  plan.own_directories = options.fresh_directory;
  if (plan.own_directories && !options.quiet)
    for (const std::string& name : ab::relative_files(plan))
      show(fmt::format("culprit: '{}' is here, and not in a fresh directory: if it is a file, give its whole path\n",
                       escape_terminal(name)));
  return ab::alternate(plan, question, stop_fd, progress_of(options.quiet));
}

/// 0: chosen.
Result<Ns> turn_length(const std::string& text) {
  if (text.empty() || text == "auto") return Ns{0};
  const auto length = parse_duration(text);
  constexpr Ns kShortest = 50'000'000;
  if (!length || *length < kShortest)
    return usage_error(fmt::format("invalid turns '{}'", text), "write them like 500ms, at least 50ms, or 'auto'");
  return *length;
}

Result<ab::Alternated> alternate_processes(const AbVerbOptions& options, const ab::Question& question, int stop_fd) {
  ab::TurnsPlan plan;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto pid = choose_process(options.processes[side]);
    if (!pid) return pid.error();
    plan.sides[side] = static_cast<pid_t>(*pid);
  }
  const auto length = turn_length(options.turns);
  if (!length) return length.error();
  plan.length = *length;
  plan.any_user = options.any_user;
  return ab::alternate(plan, question, stop_fd, progress_of(options.quiet));
}

bool has_port(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) { return word.find("{port}") != std::string::npos; });
}

bool are_servers(const AbVerbOptions& options, const std::vector<std::string>& words) {
  return !options.ready.empty() || !options.load.empty() || has_port(words);
}

/// Servers, or what else runs long and is to run in turns.
bool stay_up(const AbVerbOptions& options, const std::vector<std::string>& words) {
  return are_servers(options, words) || !options.turns.empty();
}

/// What would be waited for in vain.
Status check_servers(const AbVerbOptions& options, const TwoCommands& commands) {
  if (!options.ready.empty() && !options.ready.starts_with("http://") && !options.ready.starts_with("https://"))
    return usage_error(fmt::format("--ready '{}' is no URL of http or https", options.ready),
                       "write it like http://127.0.0.1:{port}/health, or leave it out: the port can be connected to");
  if (options.ready.empty() || has_port({options.ready, options.load}))
    for (std::size_t side = 0; side < 2; ++side)
      if (!has_port(commands[side]))
        return usage_error(fmt::format("the command of the {} has no {{port}}", ab::kSideNames[side]),
                           "write {port} where it takes the number of its port: each side gets a free one of its own");
  return {};
}

Result<ab::Alternated> alternate_servers(const AbVerbOptions& options, TwoCommands commands,
                                         const ab::Question& question, bool serve, int stop_fd) {
  const auto length = turn_length(options.turns);
  if (!length) return length.error();
  if (serve)
    if (Status status = check_servers(options, commands); !status) return status.error();
  ab::StartsPlan plan;
  ab::Servers& servers = plan.servers;
  servers.serve = serve;
  servers.commands = std::move(commands);
  servers.ready = options.ready;
  servers.printed = question.printed;
  if (!options.quiet) servers.told = [](const std::string& line) { show(fmt::format("culprit: {}\n", line)); };
  if (!options.load.empty()) {
    auto load = ab::split_command(options.load);
    if (!load) return load.error();
    servers.load = std::move(*load);
  }
  plan.turns.length = *length;
  constexpr Ns kUntilItWorks = 120'000'000'000;  // what has no port does not say when it is ready
  if (!serve) plan.turns.patience = kUntilItWorks;
  plan.most = options.starts;
  if (!options.quiet)
    plan.starting = [](std::size_t start) {
      if (start > 1 && isatty(STDERR_FILENO) != 0) show("\n");
      show(start == 1 ? "culprit: starting both\n" : fmt::format("culprit: starting both anew ({})\n", start));
    };
  return ab::alternate(plan, question, stop_fd, progress_of(options.quiet));
}

Result<int> run_ab(const AbVerbOptions& options, const std::vector<std::string>& words) {
  const auto report = settled(options.report);
  if (!report) return report.error();
  if (options.last && !options.report.fail_on.empty())
    return usage_error("--fail-on is of a comparison, and --last makes none", "leave it out");
  if (options.last) return show_last(*report);
  if (options.processes.empty() == words.empty())
    return usage_error(words.empty() ? "nothing to compare" : "both processes and commands are given",
                       "give two commands, -- A --vs -- B, or two processes, -p PID --vs -p PID");
  const bool serve = are_servers(options, words);
  const bool of_commands = !words.empty() && !stay_up(options, words);
  if (words.empty() && serve)
    return usage_error("--ready and --load are of servers that are given as commands",
                       "give clients of processes that run by yourself");
  if (options.starts > 0 && (of_commands || words.empty()))
    return usage_error(of_commands ? "--starts is of servers: each run of a command is a start already"
                                   : "--starts is of servers that are given as commands",
                       "leave it out");
  const ab::Quantity quantity = quantity_of(options.on).value_or(ab::Quantity());
  using enum ab::Quantity::Kind;
  if (quantity.kind == (of_commands ? throughput : run))
    return usage_error(
        fmt::format("--on {} is of {}", options.on, of_commands ? "what stays up" : "commands that end by themselves"),
        of_commands ? "compare the time of the run: --on run" : "what stays up is compared by its steps: --on step");
  const bool of_run = quantity.kind == automatic || quantity.kind == run || quantity.kind == cpu;
  if (options.no_record && !of_run)
    return usage_error(fmt::format("--on {} needs recordings", options.on), "leave out --no-record");
  if (!of_commands && options.no_record)
    return usage_error("--no-record is of commands that end by themselves",
                       "leave it out: steps are seen by recording");
  if (!of_commands && options.fresh_directory)
    return usage_error("--fresh-directory is of commands that end by themselves", "leave it out");
  if (!of_commands && options.warm_up)
    return usage_error("--warmup is of commands that end by themselves",
                       "leave it out: turns begin when both sides have steps");
  TwoCommands commands;
  std::array<std::string, 2> sides;
  if (words.empty()) {
    if (options.processes.size() != 2)
      return usage_error(fmt::format("{} processes are named", options.processes.size()),
                         "name both sides: culprit ab -p PID --vs -p PID");
    if (!options.versus)
      return usage_error("nothing says which process is the candidate",
                         "write --vs between them: culprit ab -p PID --vs -p PID");
    sides = {options.processes[0], options.processes[1]};
  } else {
    auto given = commands_of(words);
    if (!given) return given.error();
    commands = std::move(*given);
    for (std::size_t side = 0; side < 2; ++side) sides[side] = fmt::format("{}", fmt::join(commands[side], " "));
  }
  auto folder = Folder::make(options.keep);
  if (!folder) return folder.error();
  const auto question = question_of(options, folder->path(), std::move(sides), of_commands);
  if (!question) return question.error();
  auto signals = record::StopSignals::take();
  if (!signals) return signals.error();
  const int stop = signals->fd();
  auto alternated = words.empty() ? alternate_processes(options, *question, stop)
                    : of_commands ? alternate_commands(options, std::move(commands), *question, stop)
                                  : alternate_servers(options, std::move(commands), *question, serve, stop);
  if (!options.quiet && isatty(STDERR_FILENO) != 0) show("\r\x1b[K");
  if (!alternated) return alternated.error();
  const bool kept = !options.keep.empty();
  model::RunComparison comparison = ab::conclude(*alternated, kept);
  const bool decided =
      comparison.outcome == model::Outcome::regression || comparison.outcome == model::Outcome::improvement;
  if (decided && comparison.functions.empty() && question->preset == record::Preset::watch)
    comparison.alternation->notes.emplace_back(
        "No function is named: with --preset watch no samples are taken, with --preset deep they are");
  std::vector<model::RunPicture> pictures;
  if (report->format == "html" && !alternated->recordings[0].empty()) {
    auto drawn = pictures_of(*alternated, comparison, kept);
    if (drawn)
      pictures.assign(drawn->begin(), drawn->end());
    else if (comparison.alternation)
      comparison.alternation->notes.push_back(fmt::format("Nothing is drawn: {}", to_string(drawn.error())));
  }
  keep_last(comparison, pictures);
  auto code = deliver_comparison(*report, comparison, "ab", pictures);
  if (code && alternated->failed) return *alternated->failed;
  return code;
}

}  // namespace

void add_ab(CommandLine& app, Invocation& invocation) {
  auto options = std::make_shared<AbVerbOptions>();
  Verb* verb = app.add_subcommand("ab", "run two commands or programs in turns until it is known whether they differ");
  verb->add_option("-p,--pid", options->processes, "a process that runs, by id or name; twice, with --vs between them")
      ->type_name("PID|NAME");
  verb->add_flag("--vs", options->versus, "what follows is the candidate, what stands before the baseline");
  verb->add_option("--detect", options->detect, "the difference that matters, as 5% or 0.05 (default: 5%)")
      ->check({share_problem, {}})
      ->type_name("SHARE");
  verb->add_option("--budget", options->budget, "end after this time at the latest (default: 10m)")->type_name("TIME");
  verb->add_option("-n,--pairs", options->pairs, "run so many pairs, and look at them once; else it ends when it knows")
      ->type_name("N");
  verb->add_option("--warmup", options->warm_up,
                   "of commands that end by themselves: pairs of runs before those that count (default: 1)")
      ->type_name("N");
  verb->add_option("--turns", options->turns,
                   "how long one runs while the other stands still: of processes and servers (default: auto, by how "
                   "long their steps are and how the noise of their times remembers), and of commands that run long, "
                   "which are then started both")
      ->type_name("TIME");
  verb->add_option("--ready", options->ready,
                   "of servers: the URL that answers when one may be used, with {port} (default: the port can be "
                   "connected to)")
      ->type_name("URL");
  verb->add_option("--load", options->load,
                   "of servers: the command of their clients, with {port}; one runs for each side until the end")
      ->type_name("COMMAND");
  verb->add_option(
          "--starts", options->starts,
          "of servers: start both so many times, because two starts of the same differ, too (default: as often "
          "as the budget allows; with -n once)")
      ->type_name("N");
  verb->add_option(
          "--on", options->on,
          "what is compared: auto (default: the time of a step, where the programs have such, else of the run), "
          "step, run (of commands), cpu (CPU time of a command's run, else per step), throughput (of what stays "
          "up: time from step to step, waits included), function:NAME (per step, time in functions, kernels and "
          "ranges of that name, * is anything; kernel:NAME is the same), calls:NAME (how many of them), bytes:NAME "
          "(per step, what copies and fills on a GPU of that name moved) or counter:NAME (its mean over a turn, or a "
          "command's run; a name with a dot, as host.cpu.used, may stand alone, and host.cpu is that, too)")
      ->check({quantity_problem, {}})
      ->type_name("WHAT");
  verb->add_option("--preset", options->preset,
                   "how sides are recorded, as of 'culprit record': watch (default of processes and servers) or deep "
                   "(default of commands and counters)")
      ->check(one_of({"watch", "deep"}));
  verb->add_flag("--no-realtime", options->no_realtime,
                 "leave recorders and turns at their priority, as of 'culprit record'");
  verb->add_option("--python", options->python,
                   "watch a function of Python programs, as of 'culprit record'; ' as NAME' behind it makes its calls "
                   "steps")
      ->type_name("FUNCTION");
  verb->add_flag("--no-record", options->no_record, "commands are only timed: nothing says where a difference is");
  verb->add_flag("--fresh-directory", options->fresh_directory,
                 "each run begins in an empty directory of its own, and has such a TMPDIR");
  verb->add_option("--keep", options->keep, "keep recordings and what the runs printed in this new folder")
      ->type_name("DIR");
  verb->add_flag("--any-user", options->any_user, "root: also processes of other users are made to stand still");
  verb->add_option("--seed", options->seed, "of the lots that draw the order in each pair (default: by chance)")
      ->type_name("N");
  verb->add_option("--fail-on", options->report.fail_on, "as of 'culprit diff'")
      ->check(one_of({"regression", "any", "difference", "inconclusive", "not_comparable"}));
  verb->add_option("--format", options->report.format, "terminal, markdown, csv, json or html")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json", "html"}));
  verb->add_flag("--wide", options->report.wide, "terminal: names up to 100 columns, however wide that gets");
  verb->add_flag("--json", options->report.json, "short for --format json, on standard output");
  verb->add_flag("--html", options->report.html, kHtmlHelp);
  verb->add_option("-o,--output", options->report.output, "write to PATH, as 'culprit diff' does")->type_name("PATH");
  add_force_option(*verb, options->report.force);
  verb->add_flag("--last", options->last, "show the last result again, in any --format");
  verb->add_flag("-q,--quiet", options->quiet, "no progress");
  verb->usage(
      {"-- COMMAND... --vs -- COMMAND...", "-p PID --vs -p PID", "--load CLIENT -- SERVER... --vs -- SERVER..."});
  verb->footer(help_footer("culprit ab -- ./old/bench --vs -- ./new/bench\n"
                           "  culprit ab --fail-on regression -- make -C a --vs -- make -C b\n"
                           "  culprit ab -p 4711 --vs -p 4712 --budget 2m\n"
                           "  culprit ab --load 'wrk -d 600 http://127.0.0.1:{port}/' \\\n"
                           "    -- ./old/server --port {port} --vs -- ./new/server --port {port}") +
               "\n  1  a difference (only with --fail-on)\n  5  undecided where that is asked for (--fail-on)");
  verb->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return run_ab(*options, invocation.command); };
  });
}

}  // namespace culprit::cli
