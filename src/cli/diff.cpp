// `culprit diff`: two runs side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/diff_traces.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "core/output_file.h"
#include "deepdive/comparison.h"
#include "deepdive/comparison_report.h"
#include "deepdive/pairing.h"
#include "deepdive/perf_csv.h"
#include "deepdive/suspicion.h"
#include "report/host_report.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTerminalRows = 15;
constexpr std::size_t kTerminalRowsBesideHost = 5;  ///< where the table of thread states says more
constexpr int kMostInputs = 4096;
constexpr const char* kNativeProfile = "profile.json";  // what marks the directory of `culprit profile -o`

struct DiffOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> candidates;  ///< behind --vs
  std::string anchor;
  LoadChoice load;
  std::string fail_on;
  std::string score = "suspicion";
  std::string output;
  std::string format;
  bool json = false;
  bool force = false;
};

std::string render(const std::string& format, const deepdive::ComparisonSet& set) {
  if (format == "json") return deepdive::comparisons_json(set);
  std::string text;
  for (const deepdive::Comparison& comparison : set.comparisons)
    text += format == "csv" ? deepdive::comparison_csv(comparison) : deepdive::comparison_markdown(comparison, set);
  return text;
}

/// Both tables of a pair, read at the same time.
Result<std::array<deepdive::Profile, 2>> read_pair(const deepdive::FilePair& files) {
  deepdive::PerfCsvOptions options;
  options.decimals = deepdive::DecimalRule::reference;
  std::optional<Result<deepdive::Profile>> candidate;
  std::thread other([&] { candidate.emplace(deepdive::read_perf_csv(files.candidate.string(), options)); });
  auto base = deepdive::read_perf_csv(files.base.string(), options);
  other.join();
  if (!base) return base.error();
  if (!*candidate) return candidate->error();
  return std::array<deepdive::Profile, 2>{std::move(base).value(), std::move(*candidate).value()};
}

void note_one_sided(deepdive::ComparisonSet& set, const std::vector<std::int64_t>& pids, const fs::path& file,
                    const fs::path& other) {
  for (const std::int64_t pid : pids)
    set.unpaired.push_back(
        {file.string(), pid,
         fmt::format("{} has no process that is left over to compare it with", other.filename().string())});
}

/// A name that no other comparison of this call has.
std::string distinct_name(std::string name, std::set<std::string>& taken) {
  std::string distinct = name;
  for (int n = 2; !taken.insert(distinct).second; ++n) distinct = fmt::format("{}_v{}", name, n);
  return distinct;
}

Status compare_pair(const deepdive::FilePair& files, deepdive::ComparisonSet& set, std::set<std::string>& names) {
  const auto profiles = read_pair(files);
  if (!profiles) return profiles.error();
  const auto& [base, candidate] = *profiles;
  const deepdive::ProcessPairs processes = deepdive::pair_processes(base, candidate);
  for (const deepdive::ProcessPair& pair : processes.pairs)
    set.comparisons.push_back(
        deepdive::compare_by_suspicion(base, candidate, pair, files.identifier + files.suffix,
                                       distinct_name(deepdive::comparison_base_name(files, pair), names)));
  note_one_sided(set, processes.base_only, files.base, files.candidate);
  note_one_sided(set, processes.candidate_only, files.candidate, files.base);
  set.inputs.push_back(base.input);
  set.inputs.push_back(candidate.input);
  return {};
}

Result<deepdive::FilePairs> find_pairs(const DiffOptions& options) {
  std::error_code code;
  if (options.inputs.size() == 2) {
    for (const std::string& input : options.inputs)
      if (fs::is_directory(input, code))
        return usage_error(fmt::format("'{}' is a directory", input), "give one directory, or two profile tables");
    const fs::path base = options.inputs[0];
    const fs::path candidate = options.inputs[1];
    const std::string identifier =
        base.filename() == candidate.filename()
            ? base.filename().string()
            : fmt::format("{}_vs_{}", base.filename().string(), candidate.filename().string());
    deepdive::FilePairs pairs;
    pairs.pairs.push_back({base, candidate, identifier, "", ""});
    return pairs;
  }
  const fs::path directory = options.inputs[0];
  if (!fs::exists(directory, code)) return input_error("does not exist", directory.string(), "check the name");
  if (!fs::is_directory(directory, code))
    return usage_error(fmt::format("only one file given: '{}'", directory.string()),
                       "give the candidate, too: diff BASE.csv CAND.csv");
  const auto files = deepdive::find_profile_tables(directory);
  if (!files) return files.error();
  auto pairs = deepdive::pair_files(*files, fs::canonical(directory, code).parent_path());
  if (pairs.pairs.empty())
    return input_error(
        fmt::format("holds no pair of profile tables ({} *_perf_data.csv found)", files->size()), directory.string(),
        "give a directory in which normal_perf_data/ and abnormal_perf_data/ lie side by side and hold tables of the "
        "same name");
  return pairs;
}

/// Writes the reports of every comparison into `options.output`; the paths written are added to `written`.
Status write_reports(const DiffOptions& options, const std::string& format, const deepdive::ComparisonSet& set,
                     std::vector<fs::path>& written) {
  const fs::path directory = options.output;
  std::vector<std::pair<fs::path, std::string>> files;
  for (const deepdive::Comparison& comparison : set.comparisons) {
    if (format.empty() || format == "md")
      files.emplace_back(directory / (comparison.base_name + ".md"), deepdive::comparison_markdown(comparison, set));
    if (format.empty() || format == "csv")
      files.emplace_back(directory / (comparison.base_name + ".csv"), deepdive::comparison_csv(comparison));
  }
  if (format == "json") files.emplace_back(directory / "comparisons.json", deepdive::comparisons_json(set));
  std::error_code code;
  fs::create_directories(directory, code);
  if (code || !fs::is_directory(directory))
    return environment_error("the directory cannot be created", directory.string(), "choose another one with -o");
  for (const auto& [path, text] : files)
    if (Status status = refuse_overwriting(path.string(), {}, options.force); !status) return status;
  for (const auto& [path, text] : files) {
    if (Status status = write_report(path.string(), text, options.force); !status) return status;
    written.push_back(path);
  }
  return {};
}

/// -o names one file: by its end, unless it is a directory already.
bool is_file_target(const DiffOptions& options) {
  const std::string& path = options.output;
  std::error_code code;
  return (path.ends_with(".md") || path.ends_with(".csv") || path.ends_with(".json")) && !fs::is_directory(path, code);
}

/// -o names nothing, or a device, a pipe or a descriptor, which takes what standard output would get.
bool is_stream_target(const DiffOptions& options) {
  return !is_file_target(options) && (options.output.empty() || OutputFile::is_stream(options.output));
}

/// Writes to what -o names, or to standard output when that is nothing or a directory.
Status deliver(const DiffOptions& options, const std::string& text) {
  const bool named = !options.output.empty() && (is_file_target(options) || is_stream_target(options));
  return write_report(named ? options.output : "-", text, options.force);
}

int exit_of(const DiffOptions& options, model::Outcome outcome) {
  using enum model::Outcome;
  if (options.fail_on.empty() || options.fail_on == "not_comparable") return kFine;
  if (outcome == inconclusive) return kUndecided;
  if (options.fail_on == "inconclusive") return kFine;
  return outcome == regression || (options.fail_on == "difference" && outcome == improvement) ? kDifference : kFine;
}

/// What `culprit profile -o` wrote cannot be compared; says what can.
Status refuse_native_profiles(const DiffOptions& options) {
  for (const auto* side : {&options.inputs, &options.candidates})
    for (const std::string& input : *side) {
      std::error_code code;
      const fs::path directory = fs::is_directory(input, code) ? fs::path(input) : fs::path(input).parent_path();
      const std::string name = fs::path(input).filename().string();
      const bool is_part = name == "cycles.csv" || name == "functions.csv" || name == "resources.csv" ||
                           name == "counters.csv" || name == kNativeProfile;
      if ((fs::is_directory(input, code) || is_part) && fs::exists(directory / kNativeProfile, code) &&
          fs::exists(directory / "functions.csv", code))
        return usage_error(
            fmt::format("'{}' was written by `culprit profile`, which diff does not read", input),
            "give the traces that it was made of, or tables of `culprit profile --compat deepdive -o DIR`");
    }
  return {};
}

/// Neither one directory with both sides nor two tables.
bool begins_with_traces(const DiffOptions& options) {
  if (options.candidates.empty() && options.inputs.size() == 1) return false;
  const auto is_table = [](const std::string& path) { return is_profile_table(path); };
  return !std::all_of(options.inputs.begin(), options.inputs.end(), is_table) ||
         !std::all_of(options.candidates.begin(), options.candidates.end(), is_table);
}

std::string refusal_text(const TraceComparison& compared, bool json) {
  const auto& [reason, remedy] = *compared.not_comparable;
  if (!json) {
    std::string text = fmt::format("Not comparable: {}\n", escape_terminal(reason));
    for (const SideBySide& s : compared.side_by_side)
      text += fmt::format("  {}: {} in the baseline, {} in the candidate; nothing follows from that\n", s.what, s.base,
                          s.candidate);
    text += escape_terminal(remedy) + ".\n";
    if (compared.set.host) text += report::render_terminal(report::host_tables(*compared.set.host, true), {});
    return text;
  }
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  out.member("outcome", "not_comparable");
  out.member("reason", reason);
  out.member("remedy", remedy);
  out.begin_array("differences");
  for (const compare::Difference& d : compared.differences) {
    out.begin_object(JsonForm::line);
    out.member("what", d.what);
    out.member("base", d.base);
    out.member("candidate", d.candidate);
    out.end_object();
  }
  out.end_array();
  if (compared.set.host) report::write_tables(out, "host_tables", report::host_tables(*compared.set.host, false));
  out.end_object();
  out.finish();
  return text;
}

Result<int> report_set(const DiffOptions& options, const deepdive::ComparisonSet& set);

Result<int> run_on_traces(const DiffOptions& options) {
  TraceSides sides;
  sides.anchor = options.anchor;
  sides.load = options.load;
  if (options.candidates.empty()) {
    if (options.inputs.size() != 2)
      return usage_error("more than two files, and no --vs says where the candidate begins",
                         "diff BASE... --vs CAND...");
    sides.base = {options.inputs[0]};
    sides.candidate = {options.inputs[1]};
  } else {
    sides.base = options.inputs;
    sides.candidate = options.candidates;
  }
  for (const auto* side : {&sides.base, &sides.candidate})
    for (const std::string& path : *side)
      if (is_profile_table(path))
        return usage_error(fmt::format("'{}' is a profile table, the other side is a trace", path),
                           "give traces on both sides, or tables on both sides");
  const auto compared = compare_traces(sides);
  if (!compared) return compared.error();
  if (compared->not_comparable) {
    if (Status status = deliver(options, refusal_text(*compared, options.json || options.format == "json")); !status)
      return status.error();
    return options.fail_on.empty() ? kFine : kUndecided;
  }
  const auto reported = report_set(options, compared->set);
  if (!reported) return reported.error();
  return exit_of(options, compared->set.outcome.value_or(model::Outcome::inconclusive));
}

Result<int> run_diff(const DiffOptions& given) {
  DiffOptions options = given;
  if (options.score != "suspicion")
    return usage_error(fmt::format("there is no score '{}'", options.score), "so far 'suspicion' is the only one");
  if (options.json && !options.format.empty() && options.format != "json")
    return usage_error("--json and --format contradict each other", "give one of them");
  if (options.format == "markdown") options.format = "md";
  if (is_file_target(options) && options.format.empty()) {
    const std::string end = fs::path(options.output).extension().string().substr(1);
    if (options.json && end != "json")
      return usage_error(fmt::format("--json contradicts the name '{}'", options.output),
                         "give a name that ends in .json");
    options.format = end;
    std::vector<std::string> inputs = options.inputs;
    inputs.insert(inputs.end(), options.candidates.begin(), options.candidates.end());
    if (Status status = refuse_overwriting(options.output, inputs, options.force); !status) return status.error();
  }
  if (Status status = refuse_native_profiles(options); !status) return status.error();
  if (begins_with_traces(options)) return run_on_traces(options);
  if (!options.fail_on.empty() && options.fail_on != "not_comparable")
    return usage_error(
        fmt::format("--fail-on {} needs traces on both sides: tables of cycles are not judged", options.fail_on),
        "give the traces, or leave out --fail-on");
  if (!options.candidates.empty()) {
    if (options.inputs.size() != 1 || options.candidates.size() != 1)
      return usage_error("several profile tables on one side", "give one table for each side");
    options.inputs.push_back(options.candidates.front());
  }
  if (options.inputs.size() > 2) return usage_error("more than two profile tables", "give BASE.csv and CAND.csv");
  const auto pairs = find_pairs(options);
  if (!pairs) return pairs.error();

  deepdive::ComparisonSet set;
  set.unpaired = pairs->unpaired;
  std::set<std::string> names;
  for (const deepdive::FilePair& files : pairs->pairs)
    if (Status status = compare_pair(files, set, names); !status) return status.error();
  return report_set(options, set);
}

Result<int> report_set(const DiffOptions& options, const deepdive::ComparisonSet& set) {
  if (set.comparisons.empty())
    return input_error("the two sides hold no process to compare", options.inputs[0],
                       "look at what they recorded, or record again");
  if (is_file_target(options)) {
    if (options.format == "terminal") return usage_error("--format terminal writes no files", "leave out -o");
    if (options.format == "csv" && set.comparisons.size() > 1)
      return usage_error(fmt::format("{} tables do not fit into one CSV file", set.comparisons.size()),
                         "give a directory with -o, or a name that ends in .md or .json");
    if (Status status = deliver(options, render(options.format, set)); !status) return status.error();
    return kFine;
  }
  if (is_stream_target(options)) {
    const std::string format = options.json ? "json" : options.format;
    const Status status =
        deliver(options, format.empty() || format == "terminal"
                             ? deepdive::comparisons_terminal(set, set.host ? kTerminalRowsBesideHost : kTerminalRows)
                             : render(format, set));
    if (!status) return status.error();
    return kFine;
  }
  if (options.format == "terminal") return usage_error("--format terminal writes no files", "leave out -o");
  std::vector<fs::path> written;
  if (Status status = write_reports(options, options.format, set, written); !status) return status.error();
  std::string summary = options.json ? deepdive::comparisons_json(set) : deepdive::comparisons_terminal(set, 0);
  if (!options.json)
    for (const fs::path& path : written) summary += fmt::format("Written: {}\n", path.string());
  if (Status status = deliver(options, summary); !status) return status.error();
  return kFine;
}

}  // namespace

void add_diff(CommandLine& app, Invocation& invocation) {
  auto options = std::make_shared<DiffOptions>();
  Verb* verb = app.add_subcommand("diff", "Compare a normal run with an abnormal one");
  verb->add_option(
          "input", options->inputs,
          "BASE and CAND: traces, directories of the traces of one run, or profile tables (.csv); or one DIR with "
          "normal_perf_data/ and abnormal_perf_data/ (or any tree of such cases)")
      ->required()
      ->expected(1, kMostInputs);
  verb->add_option("--vs", options->candidates, "What comes behind is the candidate, what stands before the baseline")
      ->expected(1, kMostInputs);
  verb->add_option("--anchor", options->anchor, "Traces: name of the marker or function that begins a cycle");
  add_load_options(*verb, options->load);
  verb->add_option("--fail-on", options->fail_on,
                   "Traces: exit with 1 on a 'regression', or on any 'difference', of the cycle time, and with 5 when "
                   "that is undecided; with 5 when the outcome is 'inconclusive'; with 5 when the runs are "
                   "'not_comparable'")
      ->check(one_of({"regression", "difference", "inconclusive", "not_comparable"}))
      ->type_name("WHAT");
  verb->add_option("--score", options->score,
                   "How differences are ranked; so far only 'suspicion', which is the default");
  verb->add_option(
          "-o,--output", options->output,
          "A file, when the name ends in .md, .csv or .json; else a directory for the reports (.md and .csv per "
          "comparison), created when missing")
      ->type_name("PATH");
  verb->add_option("--format", options->format,
                   "terminal, markdown (md), csv or json; with a directory the only kind of file written")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json"}));
  verb->add_flag("--json", options->json, "The whole comparison as JSON on standard output");
  add_force_option(*verb, options->force);
  verb->footer(help_footer("culprit diff good.json.gz bad.json.gz -o report.md\n"
                           "  culprit diff good0.json good1.json --vs bad0.json bad1.json --json\n"
                           "  culprit diff last.json.gz now.json.gz --fail-on regression\n"
                           "  culprit diff case/  (with normal_perf_data/ and abnormal_perf_data/)") +
               "\n  1  a difference (only with --fail-on)\n  5  undecided: inconclusive or not comparable (only with "
               "--fail-on)");
  verb->callback([options, &invocation] { invocation.run = [options] { return run_diff(*options); }; });
}

}  // namespace culprit::cli
