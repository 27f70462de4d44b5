// `culprit profile`: what every function took in every cycle, and how the resources behaved meanwhile.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "deepdive/counters_csv.h"
#include "deepdive/hardware_csv.h"
#include "deepdive/perf_csv.h"
#include "deepdive/reference_profile.h"
#include "library/measure.h"
#include "library/run_data.h"
#include "profile/profile_tables.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHardwareFile = "topo_component.csv";

struct ProfileOptions {
  std::vector<std::string> files;
  LoadChoice load;
  std::string directory;
  std::string compat;
  std::string anchor;
  std::string phase;
  unsigned skip = 0;
  std::string hardware;
  std::int64_t cores = 0;
  bool align = false;
  bool json = false;
  bool force = false;
  std::size_t limit = 15;
  bool all = false;
  bool host = false;
  WidthOptions width;
};

using NamedTexts = std::vector<std::pair<fs::path, std::string>>;

Status write_all(const ProfileOptions& options, const NamedTexts& files) {
  std::error_code code;
  const fs::path directory = options.directory;
  fs::create_directories(directory, code);
  if (code || !fs::is_directory(directory, code))
    return environment_error("the directory cannot be created", directory.string(), "choose another one with -o");
  for (const auto& [path, text] : files)
    if (Status status = refuse_overwriting(path.string(), options.files, options.force); !status) return status;
  for (const auto& [path, text] : files)
    if (Status status = write_report(path.string(), text, options.force); !status) return status;
  return {};
}

Status print_report(const std::string& text) { return write_report("-", text, false); }

std::string written_lines(const NamedTexts& files) {
  std::string lines;
  for (const auto& [path, text] : files) lines += fmt::format("Written: {}\n", escape_terminal(path.string()));
  return lines;
}

/// "run.json.gz" -> "run".
std::string job_of(const std::string& path) {
  if (path == "-") return "stdin";
  fs::path name = fs::path(path).filename();
  for (const char* end : {".gz", ".zst"})
    if (name.extension() == end) name = name.stem();
  return name.stem().string();
}

Result<deepdive::Hardware> hardware_of(const ProfileOptions& options) {
  if (!options.hardware.empty()) return deepdive::read_hardware_csv(options.hardware);
  if (options.files.front() == "-") return deepdive::Hardware{};
  const fs::path beside = fs::path(options.files.front()).parent_path() / kHardwareFile;
  std::error_code code;
  if (!fs::exists(beside, code)) return deepdive::Hardware{};
  return deepdive::read_hardware_csv(beside.string());
}

Result<int> run_compat(const ProfileOptions& options, const Trace& trace) {
  if (options.directory.empty() || options.directory == "-")
    return usage_error("--compat writes several tables", "name a directory with -o");
  if (options.json) return usage_error("--compat writes CSV, not JSON", "leave out --json");
  const auto hardware = hardware_of(options);
  if (!hardware) return hardware.error();
  const auto cycles = deepdive::reference_cycles(trace, order_slices(trace), {options.anchor, options.align});
  if (!cycles) return cycles.error();
  NamedTexts files;
  const fs::path directory = options.directory;
  const std::string job = job_of(options.files.front());
  for (const deepdive::ReferenceTable& table : deepdive::reference_profile(trace, *cycles, *hardware, options.cores)) {
    files.emplace_back(directory / (job + table.suffix + "_perf_data.csv"), deepdive::write_perf_csv(table.profile));
    files.emplace_back(directory / (job + table.suffix + "_counters_data.csv"),
                       deepdive::write_counters_csv(table.counters));
  }
  if (Status status = write_all(options, files); !status) return status.error();
  std::string text = fmt::format("{} cycles of '{}'\n", cycles->cycles.size(), escape_terminal(cycles->anchor));
  if (hardware->bad_rows != 0)
    text += fmt::format("{} rows of the hardware description could not be used\n", hardware->bad_rows);
  if (cycles->not_placed != 0)
    text += fmt::format("{} slices lie across too many cycles and were left out\n", cycles->not_placed);
  if (const auto note = loss_note(trace.losses)) text += *note + "\n";
  if (Status status = print_report(text + written_lines(files)); !status) return status.error();
  return kFine;
}

std::string document(const ProfileOptions& options, const Trace& trace, const model::Cycles& cycles,
                     std::span<const model::Table> tables) {
  std::string text;
  JsonWriter json(text);
  begin_answer(json, options.files);
  json.member("anchor", cycles.anchor);
  json.member("how", cycles.reason);
  json.key("period_confidence");
  json.fixed(cycles.period_confidence, 3);
  json.key("phase_confidence");
  json.fixed(cycles.phase_confidence, 3);
  write_losses(json, trace.losses);
  report::write_tables(json, tables);
  json.end_object();
  json.finish();
  return text;
}

Result<int> run_profile_verb(const ProfileOptions& options) {
  if (options.compat.empty() && (options.align || options.cores != 0 || !options.hardware.empty()))
    return usage_error("--align, --cores and --hardware belong to --compat", "add --compat deepdive");
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  if (!options.compat.empty()) return run_compat(options, trace);

  const auto answer = library::measure(*run, {options.anchor, options.phase, options.skip});
  if (!answer) return answer.error();
  const model::Profile& measured = answer->profile;
  const model::Cycles& cycles = answer->found.cycles;
  std::vector<model::Table> summary =
      profile::summary_tables(measured, {options.all ? 0 : options.limit, !options.host});
  if (!summary.empty()) {
    auto& notes = summary.back().notes;
    notes.push_back(fmt::format("Cycles begin at '{}': {}", cycles.anchor, cycles.reason));
    if (answer->found.placed_by_time != 0)
      notes.push_back(fmt::format("{} GPU operations without a known launch were placed by time",
                                  format_count(answer->found.placed_by_time)));
    if (auto note = loss_note(trace.losses)) notes.push_back(std::move(*note));
  }
  const auto all = [&] {
    return std::vector<model::Table>{profile::cycles_table(measured), profile::functions_table(measured),
                                     profile::resources_table(measured), profile::counters_table(measured)};
  };
  NamedTexts files;
  if (!options.directory.empty() && options.directory != "-") {
    const std::vector<model::Table> tables = all();
    for (const model::Table& table : tables)
      files.emplace_back(fs::path(options.directory) / (table.key + ".csv"), report::render_csv(std::span(&table, 1)));
    files.emplace_back(fs::path(options.directory) / "profile.json", document(options, trace, cycles, tables));
    if (Status status = write_all(options, files); !status) return status.error();
  }
  const auto output = resolve_output({}, {});
  if (!output) return output.error();
  const report::TerminalOptions look = terminal_look(*output, options.width);
  std::string text;
  if (options.json)
    text = document(options, trace, cycles, files.empty() ? all() : summary);
  else
    text = report::render_terminal(summary, look) + written_lines(files);
  if (Status status = print_report(text); !status) return status.error();
  return kFine;
}

}  // namespace

void add_profile(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("profile", "time and resources of every function in every cycle");
  auto options = std::make_shared<ProfileOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option("-o,--output", options->directory,
                   "directory for cycles.csv, functions.csv, resources.csv, counters.csv and profile.json; created "
                   "when missing")
      ->type_name("DIR");
  verb->add_option("--anchor", options->anchor, "name of the marker or function that begins a cycle")
      ->type_name("NAME");
  verb->add_option("--phase", options->phase, "only cycles of a phase: prefill, decode, mixed, train_step, other")
      ->check(one_of({"prefill", "decode", "mixed", "train_step", "other"}));
  verb->add_option("--skip", options->skip, "leave out the first N cycles of every rank")->type_name("N");
  verb->add_flag("--all", options->all, "all functions");
  verb->add_option("--limit", options->limit, "functions shown per phase; 0 shows all (default: 15)")->type_name("N");
  verb->add_flag("--host", options->host, "show host functions, too");
  verb->add_option("--compat", options->compat, "write the tables of another tool instead: deepdive")
      ->check(one_of({"deepdive"}));
  verb->add_flag("--align", options->align, "with --compat: put the cycles of several processes together");
  verb->add_option("--cores", options->cores, "with --compat: cores of the host (default: from the hardware file)")
      ->check(in_range(0, 1 << 20))
      ->type_name("N");
  verb->add_option("--hardware", options->hardware,
                   "with --compat: hardware description (default: topo_component.csv beside the trace)")
      ->type_name("PATH");
  verb->add_flag("--json", options->json, "JSON on standard output: everything, or with -o the summary");
  add_width_options(*verb, options->width);
  add_force_option(*verb, options->force);
  verb->footer(help_footer("culprit profile run.json.gz -o profile/"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_profile_verb(*options); }; });
}

}  // namespace culprit::cli
