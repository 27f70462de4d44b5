#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process_choice.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "faults/catalog.h"
#include "faults/guard.h"
#include "faults/run.h"
#include "model/table.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

struct InjectOptions {
  faults::Request request;
  std::string target;
  std::string duration = "10s";
  bool list = false;
  bool undo = false;
  OutputOptions output;
};

/// "500ms", "10s", "2m", "1h", or seconds without a unit.
std::optional<Ns> fault_duration(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double scale = 0;
  if (unit == "ms") scale = 1e6;
  if (unit == "s" || unit.empty()) scale = 1e9;
  if (unit == "m" || unit == "min") scale = 60e9;
  if (unit == "h") scale = 3600e9;
  const double ns = number * scale;
  constexpr double kLongest = 7 * 24 * 3600e9;
  if (!(ns >= 1e6 && ns <= kLongest)) return std::nullopt;
  return static_cast<Ns>(ns);
}

void note(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

std::string clock_text(Ns unix) {
  const std::time_t seconds = unix / 1'000'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:%H:%M:%S}", parts);
}

std::string figures_text(const std::vector<faults::Figure>& figures) {
  std::vector<std::string> parts;
  for (const faults::Figure& figure : figures)
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
            parts.push_back(fmt::format("{} {:.6g}", figure.key, value));
          else
            parts.push_back(fmt::format("{} {}", figure.key, value));
        },
        figure.value);
  return escape_terminal(fmt::format("{}", fmt::join(parts, " · ")));
}

std::string report_json(const faults::Report& report) {
  const faults::FaultInfo& info = *faults::find_fault(report.fault);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("fault", report.fault);
  json.member("severity", report.severity);
  json.member("cause", info.cause);
  json.member("detail", info.detail);
  json.member("target", report.target.pid == 0 ? std::nullopt : std::optional(report.target.pid));
  json.member("what", report.what);
  json.member("begin_monotonic_ns", report.begin_monotonic);
  json.member("end_monotonic_ns", report.end_monotonic);
  json.member("begin_unix_ns", report.begin_unix);
  json.member("end_unix_ns", report.end_unix);
  json.member("ended_by", report.ended_by);
  json.begin_object("achieved");
  for (const faults::Figure& figure : report.figures)
    std::visit([&](const auto& value) { json.member(figure.key, value); }, figure.value);
  json.end_object();
  json.member("not_restored", report.not_restored);
  json.end_object();
  json.finish();
  return text;
}

std::string report_text(const faults::Report& report) {
  return fmt::format("{}: {}\n  from {} (monotonic {} ns) for {}, ended by {}\n  {}\n", report.fault,
                     escape_terminal(report.what), clock_text(report.begin_unix), report.begin_monotonic,
                     format_duration(report.end_monotonic - report.begin_monotonic), report.ended_by,
                     figures_text(report.figures));
}

Result<int> list_faults(const Output& output) {
  std::vector<std::pair<const faults::FaultInfo*, std::string>> rows;
  for (const faults::FaultInfo& info : faults::fault_table()) {
    const Status status = info.available();
    rows.emplace_back(&info, status ? std::string() : to_string(status.error()));
  }
  std::string text;
  if (output.format == OutputFormat::json) {
    JsonWriter json(text);
    json.begin_array();
    for (const auto& [info, missing] : rows) {
      json.begin_object();
      json.member("fault", info->name);
      json.member("does", info->does);
      json.member("severity", info->severity);
      json.member("cause", info->cause);
      json.member("detail", info->detail);
      json.member("needs", info->needs);
      json.member("needs_target", info->needs_target);
      json.member("available", missing.empty());
      json.member("reason", missing);
      json.end_object();
    }
    json.end_array();
    json.finish();
  } else {
    for (const auto& [info, missing] : rows) {
      const std::string verdict =
          info->detail.empty() ? std::string(info->cause) : fmt::format("{} / {}", info->cause, info->detail);
      text += fmt::format("{:<17}{}\n{:17}severity: {}\n{:17}diagnosed as: {}\n", info->name, info->does, "",
                          info->severity, "", verdict);
      if (!info->needs.empty() || info->needs_target)
        text += fmt::format("{:17}needs: {}{}{}\n", "", info->needs_target ? "--target" : "",
                            info->needs_target && !info->needs.empty() ? ", " : "", info->needs);
      text += fmt::format("{:17}here: {}\n", "", missing.empty() ? "yes" : "no: " + escape_terminal(missing));
    }
  }
  if (Status status = write_output(output, text); !status) return status.error();
  return kFine;
}

Result<int> undo_leftovers(const Output& output) {
  const auto folder = faults::state_folder();
  if (!folder) return folder.error();
  std::string document;
  JsonWriter json(document);
  json.begin_array();
  std::string text;
  bool failed = false;
  for (const faults::Leftover& leftover : faults::leftovers(*folder)) {
    if (leftover.in_use()) {
      text += fmt::format("{}: in use by process {}, left alone\n", leftover.file, leftover.injector.pid);
      json.begin_object();
      json.member("file", leftover.file);
      json.member("in_use_by", leftover.injector.pid);
      json.end_object();
      continue;
    }
    const auto failures = faults::undo_leftover(leftover);
    failed = failed || !failures.empty();
    json.begin_object();
    json.member("file", leftover.file);
    json.begin_array("steps");
    for (const faults::Undo& step : leftover.steps) {
      json.value(faults::describe(step));
      text += fmt::format("undone: {}\n", escape_terminal(faults::describe(step)));
    }
    json.end_array();
    json.member("failed", failures);
    json.end_object();
    for (const std::string& failure : failures) text += fmt::format("FAILED: {}\n", escape_terminal(failure));
  }
  json.end_array();
  json.finish();
  if (text.empty()) text = "nothing was left over\n";
  if (output.format == OutputFormat::json) text = std::move(document);
  if (Status status = write_output(output, text); !status) return status.error();
  if (failed)
    return environment_error("not everything could be undone", *folder, "run again, as the user who injected");
  return kFine;
}

Result<int> run_inject(const InjectOptions& options) {
  const auto output = resolve_output(options.output, {});
  if (!output) return output.error();
  if (output->format == OutputFormat::markdown || output->format == OutputFormat::csv)
    return usage_error("inject writes text or JSON", "use --json, or -o FILE.json");
  if (options.list) return list_faults(*output);
  if (options.undo) return undo_leftovers(*output);
  if (options.request.fault.empty()) return usage_error("no fault given", "see 'culprit inject --list'");
  faults::Request request = options.request;
  const auto duration = fault_duration(options.duration);
  if (!duration)
    return usage_error(fmt::format("invalid duration '{}'", options.duration),
                       "write 500ms, 10s or 2m, at most a week");
  request.duration = *duration;
  if (!options.target.empty()) {
    const auto chosen = choose_process(options.target);
    if (!chosen) return chosen.error();
    request.target = static_cast<pid_t>(*chosen);
  }

  faults::Hooks hooks;
  hooks.began = [](const faults::Report& report, Ns until, pid_t guard) {
    note(fmt::format("culprit: injecting {}: {}, until {}; process {} restores the machine if this one dies",
                     report.fault, escape_terminal(report.what), clock_text(until), guard));
  };
  if (isatty(STDERR_FILENO) != 0)
    hooks.progress = [](const faults::Injector& injector, Ns elapsed, Ns whole) {
      note(fmt::format("culprit: {:.0f} of {:.0f} s · {}", static_cast<double>(elapsed) / 1e9,
                       static_cast<double>(whole) / 1e9, figures_text(injector.figures())));
    };
  const auto report = faults::inject(request, hooks);
  if (!report) return report.error();
  const std::string text = output->format == OutputFormat::json ? report_json(*report) : report_text(*report);
  if (Status status = write_output(*output, text); !status) return status.error();
  if (!report->not_restored.empty())
    return environment_error(fmt::format("not restored: {}", fmt::join(report->not_restored, "; ")), "",
                             "run 'culprit inject --undo'");
  if (report->ended_by == "guard_lost")
    return environment_error("the guard process was killed, so the fault was ended and undone early", "");
  return kFine;
}

}  // namespace

void add_inject(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("inject", "disturb the machine or a process on purpose, and restore it");
  auto options = std::make_shared<InjectOptions>();
  verb->add_option("FAULT", options->request.fault, "see --list");
  verb->add_option("--severity", options->request.severity, "above 0, at most 1; see --list (default: 0.5)")
      ->check(in_range(0, 1));
  verb->add_option("--duration", options->duration, "500ms, 10s, 2m (default: 10s)")->type_name("TIME");
  verb->add_option("--target", options->target, "the process to disturb, with its descendants: its id or name")
      ->type_name("PID|NAME");
  verb->add_flag("--any-user", options->request.any_user, "root: the target may belong to another user");
  verb->add_option("--threads", options->request.threads,
                   "cpu, memory-bandwidth: N threads that work for the severity's share of the time each")
      ->check(in_range(1, 4096))
      ->type_name("N");
  verb->add_option("--path", options->request.path, "disk: the folder (default: where the target works, else /var/tmp)")
      ->type_name("FOLDER");
  verb->add_option("--interface", options->request.interface, "network: the interface (default: lo)")
      ->type_name("NAME");
  verb->add_flag("--list", options->list, "the faults, what each is diagnosed as, and whether it works here");
  verb->add_flag("--undo", options->undo, "undo what an injector left that was killed together with its guard");
  add_output_options(*verb, options->output);
  verb->footer(help_footer("culprit inject cpu --severity 1 --duration 30s --target 812 -o truth.json"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_inject(*options); }; });
}

}  // namespace culprit::cli
