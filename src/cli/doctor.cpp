#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process_choice.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "core/text.h"
#include "model/table_rows.h"
#include "record/collectors.h"
#include "record/doctor/checks.h"
#include "record/inject/inject.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

using record::CheckState;

struct DoctorOptions {
  std::string process;
  OutputOptions output;
};

/// One collector, tried.
struct Tried {
  std::string name;
  bool collects = false;
  std::string error;
  std::vector<record::Sight> sights;
};

struct Findings {
  std::vector<record::Check> checks;
  std::vector<Tried> collectors;
  std::string summary;  ///< what `culprit record` would collect now
  bool possible = false;
};

/// A folder that goes away with everything in it.
struct Scratch {
  Scratch() {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    std::string pattern = ((error ? std::filesystem::path("/tmp") : parent) / "culprit-doctor-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

/// Starts every collector as a recording would, into a file that is thrown away, and stops it at once.
Result<std::vector<Tried>> try_collectors(std::int64_t pid) {
  const Scratch scratch;
  if (scratch.path.empty())
    return environment_error("no folder for a trial recording can be made", "/tmp", "set TMPDIR to a folder with room");
  auto writer = perfetto::Writer::create(scratch.path + "/trial.pftrace");
  if (!writer) return writer.error();
  auto set = record::make_collectors(record::Preset::deep, {}, {});
  if (!set) return set.error();
  std::vector<record::Target> targets;
  if (pid > 0) targets.push_back({pid, 0});
  record::Session session{*writer, record::Preset::deep, targets, getpid()};
  std::vector<Tried> tried;
  for (const auto& collector : set->collectors) {
    static_cast<void>(collector->environment());
    const Status status = collector->start(session);
    tried.push_back(
        {std::string(collector->name()), status.ok(), status ? "" : to_string(status.error()), collector->sights()});
  }
  for (const auto& collector : set->collectors) collector->stop(session, record::monotonic_now());
  if (const Status status = writer->close(); !status) return status.error();
  return tried;
}

/// `attaches`: the agent, which a trial does not put in, can be.
std::string summary_of(const std::vector<Tried>& collectors, bool attaches) {
  std::vector<std::string> names;
  std::vector<std::string> absent;
  for (const Tried& tried : collectors) {
    std::size_t seen = 0;
    for (const record::Sight& sight : tried.sights) seen += sight.available ? std::size_t{1} : std::size_t{0};
    if (attaches && tried.name == "python")
      names.push_back(tried.name);
    else if (!tried.collects || seen == 0)
      absent.push_back(tried.name);
    else if (seen == tried.sights.size())
      names.push_back(tried.name);
    else
      names.push_back(fmt::format("{} ({} of {})", tried.name, seen, tried.sights.size()));
  }
  std::string text = names.empty() ? std::string("culprit record would collect nothing now")
                                   : fmt::format("culprit record would collect now: {}", fmt::join(names, ", "));
  if (!absent.empty() && !names.empty()) text += fmt::format("; not {}", fmt::join(absent, ", "));
  return text;
}

bool runs_python(const std::vector<record::Check>& checks) {
  return std::ranges::any_of(
      checks, [](const record::Check& c) { return c.key == "process.python" && c.state == CheckState::ok; });
}

/// Whether functions of a Python process could be watched. Nothing is tried: that would change it.
record::Check attach_check(std::int64_t pid) {
  record::Check check{"process", "process.attach", "Python functions", CheckState::ok, "the agent can be put into it",
                      {}};
  if (const Status may = record::inject::may_inject(pid); !may) {
    check.state = CheckState::limited;
    check.found = may.error().what;
    check.remedy = may.error().remedy.empty() ? "none" : may.error().remedy;
  }
  return check;
}

Result<Findings> examine(std::int64_t pid) {
  Findings findings;
  bool attaches = false;
  const record::Attempts attempts = record::make_attempts();
  findings.checks = record::machine_checks({}, attempts);
  if (pid > 0) {
    auto process = record::process_checks({}, attempts, pid);
    if (process.front().state == CheckState::missing)
      return input_error(process.front().found, fmt::format("-p {}", pid), process.front().remedy);
    findings.checks.insert(findings.checks.end(), process.begin(), process.end());
    if (runs_python(findings.checks)) {
      findings.checks.push_back(attach_check(pid));
      attaches = findings.checks.back().state == CheckState::ok;
    }
  }
  auto tried = try_collectors(pid);
  if (!tried) return tried.error();
  findings.collectors = std::move(*tried);
  for (const Tried& collector : findings.collectors) findings.possible = findings.possible || collector.collects;
  findings.summary = summary_of(findings.collectors, attaches);
  return findings;
}

std::string_view mark(CheckState state, bool color) {
  switch (state) {
    case CheckState::ok:
      return color ? "\x1b[32mok     \x1b[0m" : "ok     ";
    case CheckState::limited:
      return color ? "\x1b[33mlimited\x1b[0m" : "limited";
    case CheckState::missing:
      break;
  }
  return color ? "\x1b[31mmissing\x1b[0m" : "missing";
}

void add_line(std::string& text, std::string_view marker, std::string_view what, std::string_view found,
              std::string_view remedy, std::size_t width) {
  constexpr std::size_t kText = 11;  // where it begins
  const std::string said = broken_lines(
      fmt::format("{}{}{}", escape_terminal(what), found.empty() ? "" : ": ", escape_terminal(found)), width - kText);
  std::string lead = fmt::format("  {}  ", marker);
  for (const std::string_view line : split_lines(said)) {
    text += fmt::format("{}{}\n", lead, line);
    lead.assign(kText, ' ');
  }
  if (!remedy.empty())
    text += broken_lines(fmt::format("{:{}}-> {}", "", kText, escape_terminal(remedy)), width, kText + 3);
}

std::string terminal_text(const Findings& findings, bool color, std::size_t width) {
  std::string text;
  std::string group;
  for (const record::Check& check : findings.checks) {
    if (check.group != group) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group = check.group);
    add_line(text, mark(check.state, color), check.what, check.found, check.remedy, width);
  }
  for (const Tried& tried : findings.collectors) {
    text += fmt::format("\ncollector {}\n", tried.name);
    if (!tried.collects) add_line(text, mark(CheckState::missing, color), tried.name, tried.error, "", width);
    for (const record::Sight& sight : tried.sights)
      add_line(text, mark(sight.available ? CheckState::ok : CheckState::missing, color), sight.what, sight.why,
               sight.remedy, width);
  }
  return text + "\n" + broken_lines(escape_terminal(findings.summary), width);
}

std::vector<model::Table> tables_of(const Findings& findings) {
  struct Seen {
    const std::string& collector;
    const record::Sight& sight;
  };
  std::vector<Seen> seen;
  for (const Tried& tried : findings.collectors)
    for (const record::Sight& sight : tried.sights) seen.push_back({tried.name, sight});
  model::Table checks = model::make_table<record::Check>(
      "Checks", "checks",
      {{{"Group", "group"}, &record::Check::group},
       {{"What", "what"}, &record::Check::what},
       {{"State", "state"}, [](const record::Check& check) { return to_string(check.state); }},
       {{"Found", "found"}, &record::Check::found},
       {{"Remedy", "remedy"}, &record::Check::remedy}},
      findings.checks);
  model::Table sights =
      model::make_table<Seen>("Collectors", "sights",
                              {{{"Collector", "collector"}, [](const Seen& s) { return s.collector; }},
                               {{"What", "what"}, [](const Seen& s) { return s.sight.what; }},
                               {{"State", "state"}, [](const Seen& s) { return s.sight.available ? "ok" : "missing"; }},
                               {{"Why", "why"}, [](const Seen& s) { return s.sight.why; }},
                               {{"Remedy", "remedy"}, [](const Seen& s) { return s.sight.remedy; }}},
                              seen);
  sights.notes = {findings.summary};
  return {std::move(checks), std::move(sights)};
}

std::string json_of(const Findings& findings) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("culprit", CULPRIT_VERSION);
  json.member("possible", findings.possible);
  json.member("summary", findings.summary);
  json.begin_array("checks");
  for (const record::Check& c : findings.checks) {
    json.begin_object();
    json.member("group", c.group);
    json.member("key", c.key);
    json.member("what", c.what);
    json.member("state", to_string(c.state));
    json.member("found", c.found);
    json.member("remedy", c.remedy);
    json.end_object();
  }
  json.end_array();
  json.begin_array("collectors");
  for (const Tried& tried : findings.collectors) {
    json.begin_object();
    json.member("name", tried.name);
    json.member("collects", tried.collects);
    json.member("error", tried.error);
    json.begin_array("sights");
    for (const record::Sight& s : tried.sights) {
      json.begin_object();
      json.member("what", s.what);
      json.member("available", s.available);
      json.member("why", s.why);
      json.member("remedy", s.remedy);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.finish();
  return text;
}

Result<int> run_doctor(const DoctorOptions& options) {
  const auto output = resolve_output(options.output, {});
  if (!output) return output.error();
  std::int64_t pid = 0;
  if (!options.process.empty()) {
    const auto chosen = choose_process(options.process);
    if (!chosen) return chosen.error();
    pid = *chosen;
  }
  const auto findings = examine(pid);
  if (!findings) return findings.error();
  const std::string text = output->format == OutputFormat::terminal
                               ? terminal_text(*findings, output->color, std::max<std::size_t>(output->width, 40))
                               : rendered(*output, tables_of(*findings), {}, [&] { return json_of(*findings); });
  if (Status status = write_output(*output, text); !status) return status.error();
  return findings->possible ? kFine : static_cast<int>(ErrorKind::environment);
}

}  // namespace

void add_doctor(CommandLine& app, Invocation& invocation) {
  auto* verb =
      app.add_subcommand("doctor", "what a recording would see here, what it would miss, and how to mend that");
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("-p,--pid", options->process, "say it for this process: its id or name")->type_name("PID|NAME");
  add_output_options(*verb, options->output);
  verb->footer(help_footer("culprit doctor -p 4711"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_doctor(*options); }; });
}

}  // namespace culprit::cli
