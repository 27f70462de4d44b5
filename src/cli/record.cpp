#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/durations.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process_choice.h"
#include "cli/python_functions.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "core/output_file.h"
#include "core/text.h"
#include "core/units.h"
#include "record/collector/process_name.h"
#include "record/collectors.h"
#include "record/command.h"
#include "record/process_group.h"
#include "record/recorder.h"
#include "record/signals.h"
#include "record/targets.h"

namespace culprit::cli {

namespace {

constexpr std::string_view kPython = "python";  // the collector

struct RecordVerbOptions {
  std::string preset = "deep";
  std::uint64_t steps = 0;
  std::string duration;
  std::vector<std::string> collect;
  std::vector<std::string> no_collect;
  unsigned sample_rate = 99;
  std::string call_graph = "dwarf";
  bool every_call = false;
  bool no_realtime = false;
  int command_stderr = -1;
  int summary = -1;
  int end = -1;
  std::vector<std::string> python;
  std::string output;
  std::string switch_output;
  bool force = false;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::vector<std::string> processes;
  bool all = false;
  std::string group;
  std::string container;
};

void write_all(int descriptor, std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void say(std::string_view text) { write_all(STDERR_FILENO, text); }

/// A name for a file from the name of a program, which anybody may have chosen.
std::string file_part(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string part;
  for (const char c : name.substr(0, 40)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    part += plain ? c : '_';
  }
  return part.empty() ? "program" : part;
}

std::string default_output(const record::RecordOptions& record, const std::vector<std::string>& command) {
  std::string name;
  if (!command.empty())
    name = command.front();
  else if (!record.pids.empty())
    name = record::shown_name(record::read_process_names("/proc", record.pids.front()));
  else
    name = record.whole_machine ? "machine" : record.group;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string stem = fmt::format("culprit-{}-{:%Y%m%d-%H%M%S}", file_part(name), local);
  std::string path = stem + ".pftrace";
  std::error_code error;
  for (int number = 2; std::filesystem::exists(path, error); ++number)
    path = fmt::format("{}-{}.pftrace", stem, number);
  return path;
}

double cpu_percent(Ns part, Ns whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string missing_line(const record::CollectorSummary& collector, const record::Sight& sight) {
  return fmt::format("culprit: {}: not seen: {}: {}{}{}\n", collector.name, escape_terminal(sight.what),
                     escape_terminal(sight.why),
                     sight.remedy.empty() ? "" : "; to see it: ", escape_terminal(sight.remedy));
}

/// Functions that, as the end shows, were not there, or not all the time.
std::string missing_functions(const std::vector<record::CollectorSummary>& before,
                              const std::vector<record::CollectorSummary>& after) {
  std::set<std::string> told;
  for (const auto& collector : before)
    if (collector.name == kPython)
      for (const record::Sight& sight : collector.sights) told.insert(sight.what + sight.why);
  std::string lines;
  for (const auto& collector : after) {
    if (collector.name != kPython) continue;
    for (const record::Sight& sight : collector.sights) {
      if (sight.available && !sight.why.empty())
        lines += fmt::format("culprit: {}: {}: {}\n", collector.name, escape_terminal(sight.what),
                             escape_terminal(sight.why));
      else if (!sight.available && !told.contains(sight.what + sight.why))
        lines += missing_line(collector, sight);
    }
  }
  return lines;
}

/// What cannot be seen, why, and how to see it: a line for each that is missing of the scheduling, without which most
/// answers are, of functions that were asked for, and of everything when `all`. How many more there are is said beside
/// such lines only: `culprit doctor` tells what a machine lacks.
std::string missing_lines(const std::vector<record::CollectorSummary>& collectors, bool all, bool functions_asked) {
  std::string lines;
  std::size_t more = 0;
  for (const auto& collector : collectors) {
    for (const record::Sight& sight : collector.sights) {
      if (sight.available) continue;
      // What was asked for by name is told, too.
      if (!all && collector.name != "sched" && !(functions_asked && collector.name == kPython)) {
        ++more;
        continue;
      }
      lines += missing_line(collector, sight);
    }
  }
  if (more > 0 && !lines.empty())
    lines += fmt::format("culprit: also {} of this machine cannot be seen: -v lists {}, 'culprit doctor' helps\n",
                         more == 1 ? "one thing" : fmt::format("{} things", more), more == 1 ? "it" : "them");
  return lines;
}

std::string progress_line(const record::RecordProgress& now, const record::RecordProgress& before) {
  const Ns span = std::max<Ns>(now.elapsed - before.elapsed, 1);
  const double rate = static_cast<double>(now.events - before.events) * 1e9 / static_cast<double>(span);
  return fmt::format("\r\x1b[Krecording {:.1f} s  {} processes  {} events/s  {} dropped  {}  own CPU {:.1f} %{}",
                     static_cast<double>(now.elapsed) / 1e9, now.targets,
                     format_count(static_cast<std::uint64_t>(rate)), format_count(now.dropped),
                     format_bytes(static_cast<double>(now.file_bytes)), cpu_percent(now.own_cpu - before.own_cpu, span),
                     now.steps > 0 ? fmt::format("  {} steps", now.steps) : std::string());
}

std::string summary_text(const record::RecordSummary& summary) {
  const auto& total = summary.total;
  std::string text = fmt::format(
      "culprit: recorded {:.2f} s into {} ({}): {} events, {} dropped; own CPU {:.2f} %, {} of memory",
      static_cast<double>(total.elapsed) / 1e9, escape_terminal(summary.path),
      format_bytes(static_cast<double>(total.file_bytes)), format_count(total.events), format_count(total.dropped),
      cpu_percent(total.own_cpu, total.elapsed), format_bytes(static_cast<double>(summary.peak_memory)));
  if (total.uncounted > 0)
    text += fmt::format("; {} system calls or disk requests not counted or not timed", format_count(total.uncounted));
  if (summary.files > 1) text += fmt::format("; the last of {} files", format_count(summary.files));
  if (summary.kernel_cpu > 0)
    text += fmt::format(", in the kernel {:.2f} % of one CPU", cpu_percent(summary.kernel_cpu, total.elapsed));
  if (summary.left_out > 0)
    text += fmt::format("; {} processes were left out (more than {})", format_count(summary.left_out),
                        format_count(record::Targets::kMost));
  if (total.steps > 0) return text + fmt::format("; {} steps\n", format_count(total.steps));
  return text +
         "\nculprit: the program marked no steps: `culprit diff` compares its units of work (`culprit info` says "
         "which);"
         " docs/annotate.md says how to mark steps\n";
}

void add_error(JsonWriter& json, const Error& error) {
  json.member("error", to_string(error));
  json.begin_object("error_parts");
  json.member("kind", to_string(error.kind));
  json.member("what", error.what);
  json.member("where", error.where);
  json.member("remedy", error.remedy);
  json.end_object();
}

std::string summary_json(const record::RecordSummary& summary) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("file", summary.path);
  json.member("files_written", summary.files);
  json.member("end", record::to_string(summary.ending));
  json.member("duration_ns", summary.total.elapsed);
  json.member("steps", summary.total.steps);
  json.member("events", summary.total.events);
  json.member("dropped", summary.total.dropped);
  json.member("uncounted", summary.total.uncounted);
  json.member("processes_left_out", summary.left_out);
  json.begin_object("cost");
  json.member("own_cpu_ns", summary.total.own_cpu);
  json.member("own_peak_memory_bytes", summary.peak_memory);
  json.member("file_bytes", summary.total.file_bytes);
  json.member("raw_bytes", summary.raw_bytes);
  json.member("kernel_cpu_ns", summary.kernel_cpu > 0 ? std::optional(summary.kernel_cpu) : std::nullopt);
  json.end_object();
  json.begin_array("collectors");
  for (const auto& collector : summary.collectors) {
    json.begin_object();
    json.member("name", collector.name);
    json.member("collected", collector.collected);
    json.member("events", collector.stats.events);
    json.member("dropped", collector.stats.dropped);
    json.member("uncounted", collector.stats.uncounted);
    json.begin_array("sees");
    for (const record::Sight& sight : collector.sights)
      if (sight.available) json.value(sight.what);
    json.end_array();
    json.begin_array("missing");
    for (const record::Sight& sight : collector.sights) {
      if (sight.available) continue;
      json.begin_object();
      json.member("what", sight.what);
      json.member("why", sight.why);
      json.member("remedy", sight.remedy);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  if (summary.command_status) json.member("command_exit_code", record::exit_code_of(*summary.command_status));
  if (summary.error) add_error(json, *summary.error);
  json.end_object();
  json.finish();
  return text;
}

/// In place of the summary of what did not begin.
std::string error_json(const Error& error) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  add_error(json, error);
  json.end_object();
  json.finish();
  return text;
}

/// "60s" or "60s,10".
Status parse_switch(const std::string& text, record::RecordOptions& record) {
  const std::size_t comma = text.find(',');
  const auto every = parse_duration(text.substr(0, comma));
  const auto keep = comma == std::string::npos ? std::optional<unsigned>(0)
                                               : parse_number<unsigned>(std::string_view(text).substr(comma + 1));
  constexpr Ns kShortest = 100'000'000;
  if (!every || *every < kShortest || !keep || (comma != std::string::npos && *keep == 0))
    return usage_error(fmt::format("invalid --switch-output '{}'", text),
                       "write 60s, at least 100ms, or 60s,10 to keep ten files");
  record.switch_every = *every;
  record.keep = *keep;
  if (OutputFile::is_stream(record.output))
    return usage_error("--switch-output writes files", "give -o the name of a file");
  return {};
}

/// Says whom a name was taken for.
void say_chosen(const std::vector<Choice>& choices) {
  for (const Choice& choice : choices)
    if (!choice.word.empty())
      say(fmt::format("culprit: '{}' is process {}\n", escape_terminal(choice.word), fmt::join(choice.pids, ", ")));
}

/// Whom to record, as the options say.
Status choose_targets(const RecordVerbOptions& options, const std::vector<std::string>& command,
                      record::RecordOptions& record) {
  const int ways = static_cast<int>(!options.processes.empty()) + static_cast<int>(options.all) +
                   static_cast<int>(!options.group.empty()) + static_cast<int>(!options.container.empty()) +
                   static_cast<int>(!command.empty());
  if (ways != 1)
    return usage_error(ways == 0 ? "nothing to record" : "more than one of -p, -a, --cgroup, --container and a COMMAND",
                       "give -p PID or NAME, -a, --cgroup, --container, or a COMMAND behind '--'");
  record.command = command;
  record.whole_machine = options.all;
  if (!options.processes.empty()) {
    const auto choices = choose_processes(options.processes);
    if (!choices) return choices.error();
    for (const Choice& choice : *choices) record.pids.insert(record.pids.end(), choice.pids.begin(), choice.pids.end());
    if (!options.quiet) say_chosen(*choices);
  }
  if (options.group.empty() && options.container.empty()) return {};
  auto group = options.group.empty() ? record::find_container(options.container) : record::find_group(options.group);
  if (!group) return group.error();
  record.group = std::move(*group);
  return {};
}

/// Functions that nobody would watch.
Status check_python(const RecordVerbOptions& options) {
  const auto names = [](const std::vector<std::string>& list) {
    return std::ranges::find(list, kPython) != list.end();
  };
  if (options.python.empty()) return {};
  if (names(options.no_collect))
    return usage_error("--python names a function, but --no-collect python leaves all of them out",
                       "leave out one of the two");
  if (!options.collect.empty() && !names(options.collect))
    return usage_error("--python names a function, but --collect leaves out python", "add python to --collect");
  return {};
}

/// `is_told`: the summary is written.
Result<int> record_them(const RecordVerbOptions& options, const std::vector<std::string>& command, bool& is_told) {
  record::RecordOptions record;
  if (Status status = choose_targets(options, command, record); !status) return status.error();
  record.preset = options.preset == "watch" ? record::Preset::watch : record::Preset::deep;
  record.steps = options.steps;
  record.replace = options.force;
  record.version = CULPRIT_VERSION;
  if (!options.duration.empty()) {
    const auto duration = parse_duration(options.duration);
    if (!duration || *duration <= 0)
      return usage_error(fmt::format("invalid duration '{}'", options.duration), "write it like 10s, 500ms or 2m");
    record.duration = *duration;
  }
  record.prompt = !options.no_realtime;
  record.command_stderr = options.command_stderr;
  if (record.command_stderr >= 0 && fcntl(record.command_stderr, F_GETFD) < 0)
    return usage_error(fmt::format("--command-stderr {} is not an open file", record.command_stderr),
                       "give the number of a descriptor that the recorder inherits");
  if (options.summary >= 0 && fcntl(options.summary, F_SETFD, FD_CLOEXEC) < 0)  // the command has none of it
    return usage_error(fmt::format("--json-fd {} is not an open file", options.summary),
                       "give the number of a descriptor that the recorder inherits");
  if (options.end >= 0)
    if (Status status = record::stop_with_pipe(options.end); !status) return status.error();
  record.output = options.output.empty() ? default_output(record, command) : options.output;
  if (record.output == "-") return usage_error("a recording cannot go to standard output", "give -o FILE");

  if (!options.switch_output.empty())
    if (Status status = parse_switch(options.switch_output, record); !status) return status.error();

  if (Status status = check_python(options); !status) return status.error();
  auto functions = python_functions(options.python);
  if (!functions) return functions.error();
  auto collectors = record::make_collectors(
      record.preset, options.collect, options.no_collect,
      {options.sample_rate,
       options.call_graph == "fp" ? record::samples::CallGraph::frame_pointer : record::samples::CallGraph::dwarf,
       options.every_call, std::move(*functions)});
  if (!collectors) return collectors.error();
  record::Recorder recorder(std::move(record), std::move(*collectors));
  if (Status status = recorder.open(); !status) return status.error();
  auto signals = record::StopSignals::take();
  if (!signals) return signals.error();
  const Status started = recorder.start();
  const std::vector<record::CollectorSummary> begun = recorder.collectors();
  if (!options.quiet) say(missing_lines(begun, options.verbose, !options.python.empty()));
  if (!started) return started.error();

  std::function<void(const record::RecordProgress&)> progress;
  record::RecordProgress before;
  const bool terminal = !options.quiet && isatty(STDERR_FILENO) != 0;
  if (terminal)
    progress = [&before](const record::RecordProgress& now) {
      if (now.elapsed > 1'000'000'000) say(progress_line(now, before));
      before = now;
    };
  const record::RecordSummary summary = recorder.run(signals->fd(), progress);
  if (terminal) say("\r\x1b[K");
  if (!options.quiet) say(summary_text(summary));
  if (!options.quiet) say(missing_functions(begun, recorder.collectors()));
  if (options.json)
    if (Status status = write_output({}, summary_json(summary)); !status) return status.error();
  if (options.summary >= 0) write_all(options.summary, summary_json(summary));
  is_told = true;
  if (summary.error) return *summary.error;
  return summary.command_status ? record::exit_code_of(*summary.command_status) : kFine;
}

Result<int> run_record(const RecordVerbOptions& options, const std::vector<std::string>& command) {
  bool is_told = false;
  auto done = record_them(options, command, is_told);
  if (!done && !is_told && options.summary >= 0) write_all(options.summary, error_json(done.error()));
  return done;
}

}  // namespace

void add_record(CommandLine& app, Invocation& invocation) {
  auto* verb =
      app.add_subcommand("record", "record what running processes (-p), or a program that is started (-- COMMAND), do");
  auto options = std::make_shared<RecordVerbOptions>();
  verb->add_option("-p,--pid", options->processes, "processes to record, with their descendants: ids or names")
      ->delimiter(',')
      ->type_name("PID|NAME");
  verb->add_flag("-a,--all", options->all, "every process but the recorder");
  verb->add_option("--cgroup", options->group, "the processes of a control group and those below it, now and later")
      ->type_name("PATH");
  verb->add_option("--container", options->container,
                   "those of a container: the begin of its id, or the name of one of LXC or systemd-nspawn")
      ->type_name("ID|NAME");
  verb->add_option("--preset", options->preset,
                   "deep: every detail, a few percent of cost (default); watch: cheap enough to stay on")
      ->check(one_of({"watch", "deep"}))
      ->type_name("PRESET");
  verb->add_option("--duration", options->duration, "end after this time: 10s, 500ms, 2m")->type_name("TIME");
  verb->add_option("--steps", options->steps, "end after so many steps that the program marks")
      ->check(in_range(1, 1e15))
      ->type_name("N");
  const std::string names = fmt::format("{}", fmt::join(record::collector_names(), ", "));
  verb->add_option("--collect", options->collect, "only these, by comma: " + names)->delimiter(',')->type_name("NAME");
  verb->add_option("--no-collect", options->no_collect, "all but these")->delimiter(',')->type_name("NAME");
  verb->add_option("--sample-rate", options->sample_rate,
                   "how often a second each CPU is asked for the call stack of what runs (default: 99); less often, "
                   "down to 10, where that takes more than 2 % of a CPU")
      ->check(in_range(1, 10000))
      ->type_name("HZ");
  verb->add_option("--call-graph", options->call_graph,
                   "how callers of what runs are found: dwarf (by the tables that compilers write for exceptions; "
                   "default) or fp (by frame pointers: cheaper, where code keeps them)")
      ->check(one_of({"dwarf", "fp"}));
  verb->add_flag("--every-call", options->every_call,
                 "count every system call, however many there are; without it 'deep' counts all while they are fewer "
                 "than 50,000 a second and a sample beyond, 'watch' always a sample (the file says how sure its "
                 "numbers are)");
  verb->add_flag("--no-realtime", options->no_realtime,
                 "leave the recorder at its priority; without it the recorder comes before ordinary programs where it "
                 "may (SCHED_RR, which needs CAP_SYS_NICE), as what it does not fetch in time is lost");
  verb->add_option("--command-stderr", options->command_stderr,
                   "the COMMAND's standard error is this open file, so that messages of the recorder stand apart")
      ->check(in_range(0, 1e6))
      ->type_name("FD");
  verb->add_option("--json-fd", options->summary,
                   "write the summary as JSON into this open file, which the COMMAND does not inherit")
      ->check(in_range(0, 1e6))
      ->type_name("FD");
  verb->add_option("--end-fd", options->end,
                   "end, as by SIGTERM, when nobody can write into this pipe any more: with the program that holds its "
                   "other end, whatever ends that")
      ->check(in_range(0, 1e6))
      ->type_name("FD");
  verb->add_option(
          "--python", options->python,
          "watch a function of Python programs, also of running ones: "
          "'module:Class.function(argument.path, name=len(argument.path), sum(argument.path))'; one that "
          "another function makes: 'module:outer.<locals>.inner'; @FILE: one a line; may be repeated. "
          "' as NAME' behind it makes calls steps, ' requests NAME=BEGIN..END' ends of "
          "requests, ' says bs={NUMBER}' tells of the step (docs/attach.md). Those of vLLM, SGLang, of loops of "
          "PyTorch and of generation with transformers that matter are watched without being named")
      ->type_name("FUNCTION");
  verb->add_option("-o,--output", options->output,
                   "the recording (default: culprit-NAME-DATE-TIME.pftrace; an existing file is never overwritten)")
      ->type_name("FILE");
  verb->add_option("--switch-output", options->switch_output,
                   "begin another file after this time, each complete on its own: FILE.0001.pftrace, ...; with N only "
                   "the last N are kept")
      ->type_name("TIME[,N]");
  add_force_option(*verb, options->force);
  verb->add_flag("--json", options->json, "print the summary as JSON on standard output");
  verb->add_flag("-v,--verbose", options->verbose, "list everything that cannot be seen on this machine");
  verb->add_flag("-q,--quiet", options->quiet, "print errors only");
  verb->usage({"-p PID|NAME[,...]", "-a | --cgroup PATH | --container ID", "-- COMMAND [ARGUMENT...]"});
  verb->footer(
      "A NAME is that of 'ps': of the main thread, the title, or the program's file; or what only one of them begins "
      "with, or holds. Several processes of one name are recorded when they belong together (one is the parent of the "
      "others, or they have the same parent); else they are listed.\n\n"
      "Ends at --duration, at --steps, when the target ends, or on Ctrl-C. A COMMAND whose recording ends first gets "
      "SIGTERM; its exit code is passed on when it ends by itself. Of environment and arguments only switches, "
      "numbers and what an allow-list names are recorded (docs/record.md).\n\n"
      "Cost, measured on 2 CPUs (scripts/bench-record, scripts/bench-served): a context switch and its wake-up take "
      "some 230 ns more with scheduling alone, 470 ns more with deep, 240 ns more with watch (900 ns by themselves; "
      "perf sched record: 570 ns more); a system call 99 ns more with --every-call, 15 ns more with watch, which looks "
      "in windows only. Answers per second lost with watch and with deep: redis 1.6 and 7.0 %, nginx 4.8 and "
      "9.7 %, postgres 5.1 and 11.1 %; steps of SGLang 0.6 and 5.3 % (docs/record.md has intervals, other machines "
      "and vLLM).\n\n"
      "Examples:\n"
      "  culprit record -p 4711 --duration 10s -o normal.pftrace\n"
      "  culprit record --preset watch -p redis-server,VLLM::EngineCore\n"
      "  culprit record -a --duration 10s\n"
      "  culprit record --preset watch -p nginx --switch-output 60s,30 -o web.pftrace\n"
      "  culprit record -- python3 serve.py --port 8000\n\n"
      "Needs root, or once: sudo setcap cap_bpf,cap_perfmon+ep $(command -v culprit)\n"
      "Without these privileges totals per thread are recorded.\n\n"
      "Exit codes:\n  0  fine, or the COMMAND's own\n  2  bad usage\n  3  bad input\n"
      "  4  nothing can be collected, or the disk is full");
  verb->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return run_record(*options, invocation.command); };
  });
}

}  // namespace culprit::cli
