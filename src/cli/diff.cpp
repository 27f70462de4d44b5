// `culprit diff`: two runs side by side.
#include "cli/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/text.h"
#include "library/table_comparisons.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr int kMostInputs = 4096;

/// What `culprit profile -o` wrote cannot be compared.
Status refuse_native_profiles(const DiffOptions& options) {
  for (const auto* side : {&options.inputs, &options.candidates})
    for (const std::string& input : *side)
      if (Status status = library::refuse_native_profile(input); !status) return status;
  return {};
}

}  // namespace

bool begins_with_traces(const DiffOptions& options) {
  if (options.candidates.empty() && options.inputs.size() == 1) return false;
  return !std::ranges::all_of(options.inputs, library::is_profile_table) ||
         !std::ranges::all_of(options.candidates, library::is_profile_table);
}

Result<DiffOptions> settled(const DiffOptions& given) {
  DiffOptions options = given;
  if (options.json && !options.format.empty() && options.format != "json")
    return usage_error("--json and --format contradict each other", "give one of them");
  if (options.html && (options.json || (!options.format.empty() && options.format != "html")))
    return usage_error("--html and another format contradict each other", "give one of them");
  if (options.html) options.format = "html";
  if (options.score.empty()) options.score = "impact";
  if (options.format == "markdown") options.format = "md";
  if (options.fail_on == "difference") options.fail_on = "any";
  if (is_file_target(options) && options.format.empty()) {
    const std::string end = fs::path(options.output).extension().string().substr(1);
    if (options.json && end != "json")
      return usage_error(fmt::format("--json contradicts the name '{}'", options.output),
                         "give a name that ends in .json");
    options.format = end;
  }
  std::error_code code;
  const bool pages = options.format == "html" && fs::is_directory(options.output, code);
  if (is_file_target(options) || (options.format == "html" && !options.output.empty() && !pages)) {
    std::vector<std::string> inputs = options.inputs;
    for (const auto* more : {&options.candidates, &options.history})
      inputs.insert(inputs.end(), more->begin(), more->end());
    if (Status status = refuse_overwriting(options.output, inputs, options.force); !status) return status.error();
  }
  if (options.format == "html") {
    if (Status status = check_page_target(options.output); !status) return status.error();
    if (pages && begins_with_traces(options) && options.score != "suspicion")
      return usage_error(fmt::format("'{}' is a directory, and a page is one file", options.output), "-o report.html");
  }
  return options;
}

namespace {

Result<int> run_diff(const DiffOptions& given) {
  const auto made = settled(given);
  if (!made) return made.error();
  const DiffOptions& options = *made;
  if (Status status = refuse_native_profiles(options); !status) return status.error();
  const bool traces = begins_with_traces(options);
  if (traces && options.score != "suspicion") return diff_runs(options);
  if (!options.history.empty()) return library::history_needs_traces();
  if (!options.fail_on.empty() && options.fail_on != "not_comparable" && options.score != "impact")
    return usage_error(
        fmt::format("--fail-on {} needs --score impact: the other score states no outcome", options.fail_on),
        "leave out --score, or --fail-on");
  return diff_tables(options);
}

}  // namespace

std::optional<double> parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text = trim(text.substr(0, text.size() - 1));
  const auto value = parse_number<double>(text);
  if (!value) return std::nullopt;
  return percent ? *value / 100 : *value;
}

std::string share_problem(const std::string& text) {
  const auto share = parse_share(text);
  return share && *share > 0 && *share < 1 ? "" : fmt::format("'{}' is no share between 0 and 1: 3% or 0.03", text);
}

void add_diff(CommandLine& app, Invocation& invocation) {
  auto options = std::make_shared<DiffOptions>();
  Verb* verb = app.add_subcommand("diff", "compare two runs: did the steps become slower, and what changed");
  verb->add_option("INPUT", options->inputs,
                   "BASE and CAND: traces, directories of the traces of one run, or profile tables (.csv); or one DIR "
                   "with normal_perf_data/ and abnormal_perf_data/")
      ->required()
      ->expected(1, kMostInputs)
      ->type_name("");
  verb->add_option("--vs", options->candidates, "what follows is the candidate, what stands before the baseline")
      ->expected(1, kMostInputs)
      ->type_name("CAND");
  verb->add_option("--history", options->history,
                   "earlier recordings of the same workload, three or more: how much they differ is how much two "
                   "recordings of the same do, which is assumed otherwise")
      ->expected(1, kMostInputs)
      ->type_name("RUN");
  verb->add_option("--anchor", options->anchor, "name of the marker or function that begins a cycle")
      ->type_name("NAME");
  add_load_options(*verb, options->load);
  verb->add_option("--tolerance", options->tolerance,
                   "change of the cycle time that does not matter, as 3% or 0.03 (default: 3%)")
      ->check({share_problem, {}})
      ->type_name("SHARE");
  verb->add_option(
          "--fail-on", options->fail_on,
          "exit with 1 when the cycle time shows WHAT: a 'regression', or 'any' difference; with 5 when the runs "
          "cannot be compared ('not_comparable' asks for that alone). What is not decided passes with a warning; "
          "'inconclusive' is as 'regression', and exits with 5 then")
      ->check(one_of({"regression", "any", "difference", "inconclusive", "not_comparable"}))
      ->type_name("WHAT");
  verb->add_option("--score", options->score,
                   "how differences are ranked: 'impact' on the cycle (default), or 'suspicion', the reference tool's "
                   "score")
      ->check(one_of({"impact", "suspicion"}))
      ->type_name("SCORE");
  verb->add_option(
          "--format", options->format,
          "terminal, markdown, csv, json or html (default: by the end of PATH); with a directory the only kind "
          "of file written")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json", "html"}));
  verb->add_flag("--wide", options->wide, "terminal: names up to 100 columns, however wide that gets");
  verb->add_flag("--json", options->json, "short for --format json, on standard output");
  verb->add_flag("--html", options->html, kHtmlHelp);
  verb->add_option(
          "-o,--output", options->output,
          "write to PATH: a file, when it ends in .md, .csv, .json or .html, else a directory for the reports, "
          "created when missing. A page (--html) is a file under any name; of tables PATH gets one for each pair where "
          "it is a directory, or there are several pairs")
      ->type_name("PATH");
  add_force_option(*verb, options->force);
  verb->footer(help_footer("culprit diff good.json.gz bad.json.gz -o report.html\n"
                           "  culprit diff good0.json good1.json --vs bad0.json bad1.json --json\n"
                           "  culprit diff last.json.gz now.json.gz --history runs/*.json.gz\n"
                           "  culprit diff last.json.gz now.json.gz --fail-on regression\n"
                           "  culprit diff case/ --score suspicion -o reports/\n"
                           "  culprit diff good.csv bad.csv") +
               "\n  1  a difference (only with --fail-on)\n  5  not comparable, or undecided where that is asked for "
               "(--fail-on)");
  verb->callback([options, &invocation] { invocation.run = [options] { return run_diff(*options); }; });
}

}  // namespace culprit::cli
