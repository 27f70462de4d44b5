// `culprit diff` of profile tables: what they tell of the impact on their cycles; and `--score suspicion`, the
// comparison of the reference tool, of such tables or of those that it would make of two traces.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/output.h"
#include "cli/table_page.h"
#include "cli/table_verdicts.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "deepdive/comparison.h"
#include "deepdive/comparison_report.h"
#include "deepdive/comparison_text.h"
#include "deepdive/pairing.h"
#include "deepdive/perf_csv.h"
#include "deepdive/reference_profile.h"
#include "deepdive/suspicion.h"
#include "library/run_data.h"
#include "library/same_content.h"
#include "report/run_comparison_tables.h"
#include "report/verdict_report.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTerminalRows = 15;

using Profiles = std::array<deepdive::Profile, 2>;

deepdive::PerfCsvOptions reference_decimals() {
  deepdive::PerfCsvOptions options;
  options.decimals = deepdive::DecimalRule::reference;
  return options;
}

/// Both tables of a pair, read at the same time.
Result<Profiles> read_pair(const deepdive::FilePair& files) {
  std::optional<Result<deepdive::Profile>> candidate;
  std::thread other(
      [&] { candidate.emplace(deepdive::read_perf_csv(files.candidate.string(), reference_decimals())); });
  auto base = deepdive::read_perf_csv(files.base.string(), reference_decimals());
  other.join();
  if (!base) return base.error();
  if (!*candidate) return candidate->error();
  return Profiles{std::move(base).value(), std::move(*candidate).value()};
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

/// What a page shows of one comparison beside it.
struct TablePage {
  model::RunComparison compared;
  std::array<model::RunPicture, 2> pictures;
};

/// All comparisons of one invocation.
struct TableComparisons {
  deepdive::ComparisonSet set;
  std::vector<TablePage> pages;  ///< of each of its comparisons
  std::set<std::string> names;   ///< of their files
  double tolerance = 0;
  bool same = false;  ///< both sides are one table
};

void compare_pair(const deepdive::FilePair& files, const Profiles& profiles, TableComparisons& all) {
  deepdive::ComparisonSet& set = all.set;
  const auto& [base, candidate] = profiles;
  const deepdive::ProcessPairs processes = deepdive::pair_processes(base, candidate);
  for (const deepdive::ProcessPair& pair : processes.pairs) {
    deepdive::Comparison& comparison = set.comparisons.emplace_back(
        deepdive::compare_by_suspicion(base, candidate, pair, files.identifier + files.suffix,
                                       distinct_name(deepdive::comparison_base_name(files, pair), all.names)));
    model::RunComparison compared =
        comparison_of_tables(base, candidate, pair, comparison.anchors_differ, all.tolerance);
    if (!compared.cycle_times.empty()) comparison.outcome = report::to_string(compared.outcome);
    comparison.verdicts = compared.verdicts;
    for (const report::VerdictText& verdict : report::verdict_texts(compared)) {
      comparison.causes.push_back(verdict.head);
      for (const std::string& line : verdict.lines) comparison.causes.push_back("  " + line);
    }
    compared.disks.clear();  // calls that read and write, in their place: the causes have seen them
    std::array<model::RunPicture, 2> pictures = pictures_of_tables(base, candidate, pair, compared);
    all.pages.push_back({std::move(compared), std::move(pictures)});
  }
  note_one_sided(set, processes.base_only, files.base, files.candidate);
  note_one_sided(set, processes.candidate_only, files.candidate, files.base);
  set.inputs.push_back(base.input);
  set.inputs.push_back(candidate.input);
}

deepdive::FilePair pair_of(const fs::path& base, const fs::path& candidate) {
  const std::string identifier = base.filename() == candidate.filename()
                                     ? base.filename().string()
                                     : fmt::format("{}_vs_{}", base.filename().string(), candidate.filename().string());
  return {base, candidate, identifier, "", ""};
}

Result<deepdive::FilePairs> find_pairs(const std::vector<std::string>& inputs) {
  std::error_code code;
  if (inputs.size() == 2) {
    for (const std::string& input : inputs)
      if (fs::is_directory(input, code))
        return usage_error(fmt::format("'{}' is a directory", input), "give one directory, or two profile tables");
    deepdive::FilePairs pairs;
    pairs.pairs.push_back(pair_of(inputs[0], inputs[1]));
    return pairs;
  }
  const fs::path directory = inputs[0];
  if (!fs::exists(directory, code)) return input_error("does not exist", directory.string(), "check the name");
  if (!fs::is_directory(directory, code))
    return usage_error(fmt::format("only one file given: '{}'", directory.string()),
                       "give the candidate, too: diff BASE CAND");
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

/// The tables that `culprit profile --compat deepdive` writes, as they are read back.
Result<std::vector<deepdive::ReferenceTable>> tables_of(const std::vector<std::string>& files,
                                                        const DiffOptions& options) {
  const auto run = load_with_progress(files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  deepdive::ReferenceOptions how;
  how.anchor = options.anchor;
  how.otherwise = "leave out --score suspicion";
  const auto cycles = deepdive::reference_cycles(trace, order_slices(trace), how);
  if (!cycles) return cycles.error();
  std::vector<deepdive::ReferenceTable> tables = deepdive::reference_profile(trace, *cycles, {});
  for (deepdive::ReferenceTable& table : tables) {
    auto read = deepdive::parse_perf_csv(deepdive::write_perf_csv(table.profile), files.front(), reference_decimals());
    if (!read) return read.error();
    table.profile = std::move(*read);
  }
  return tables;
}

Status compare_traces(const DiffOptions& options, TableComparisons& all) {
  const auto sides = trace_sides(options);
  if (!sides) return sides.error();
  auto base = tables_of(sides->base, options);
  if (!base) return base.error();
  auto candidate = tables_of(sides->candidate, options);
  if (!candidate) return candidate.error();
  for (deepdive::ReferenceTable& table : *base)
    for (deepdive::ReferenceTable& partner : *candidate) {
      if (table.suffix != partner.suffix) continue;
      deepdive::FilePair files = pair_of(sides->base.front(), sides->candidate.front());
      files.suffix = table.suffix;
      compare_pair(files, {std::move(table.profile), std::move(partner.profile)}, all);
    }
  return {};
}

/// Options that tables have no use for must not seem to do something.
Status refuse_options_of_traces(const DiffOptions& options) {
  if (!options.anchor.empty())
    return usage_error("--anchor is for traces: the cycles of profile tables are made already", "leave it out");
  const LoadChoice usual;
  for (const auto& [name, given] : {std::pair("--threads", options.load.threads != usual.threads),
                                    std::pair("--max-expansion", options.load.max_expansion != usual.max_expansion)})
    if (given) return usage_error(fmt::format("{} is for traces, and these are profile tables", name), "leave it out");
  return {};
}

Status compare_tables(const DiffOptions& options, TableComparisons& all) {
  std::vector<std::string> inputs = options.inputs;
  if (!options.candidates.empty()) {
    if (inputs.size() != 1 || options.candidates.size() != 1)
      return usage_error("several profile tables on one side", "give one table for each side");
    inputs.push_back(options.candidates.front());
  }
  if (inputs.size() > 2) return usage_error("more than two profile tables", "give BASE.csv and CAND.csv");
  const auto pairs = find_pairs(inputs);
  if (!pairs) return pairs.error();
  if (Status status = refuse_options_of_traces(options); !status) return status;
  deepdive::ComparisonSet& set = all.set;
  set.unpaired = pairs->unpaired;
  for (const deepdive::FilePair& files : pairs->pairs) {
    const auto profiles = read_pair(files);
    if (!profiles) return profiles.error();
    compare_pair(files, *profiles, all);
    all.same = inputs.size() == 2 && library::same_content(inputs[0], inputs[1]);
    if (all.same) set.notes.emplace_back("Baseline and candidate are the same table");
  }
  return {};
}

/// What tables leave out, and who has no partner.
void add_notes(const deepdive::Comparison& comparison, const deepdive::ComparisonSet& set,
               model::RunComparison& compared) {
  const deepdive::NameStyle style{[&](StringId id) { return std::string(comparison.texts[id]); },
                                  [](std::string_view text) { return std::string(text); }};
  for (std::string& note : deepdive::input_notes(comparison, set, style)) compared.notes.push_back(std::move(note));
  for (std::string& note : deepdive::set_notes(set, style)) compared.notes.push_back(std::move(note));
}

/// As traces are compared.
Result<int> deliver_by_impact(const DiffOptions& options, TableComparisons& all) {
  const deepdive::ComparisonSet& set = all.set;
  for (std::size_t i = 0; i < set.comparisons.size(); ++i) add_notes(set.comparisons[i], set, all.pages[i].compared);
  for (TablePage& page : all.pages)
    if (all.same) {
      page.compared.same_recording = true;
      page.compared.outcome = model::Outcome::no_change;
    }
  if (all.pages.size() == 1)
    return deliver_comparison(options, all.pages.front().compared, "diff", all.pages.front().pictures);
  const auto shown_as = [&](const model::RunComparison& compared, const char* format) {
    DiffOptions as = options;
    as.json = false;
    as.format = format;
    return comparison_text(as, compared, "diff");
  };
  DiffReport report;
  int worst = kFine;
  for (std::size_t i = 0; i < set.comparisons.size(); ++i) {
    const deepdive::Comparison& comparison = set.comparisons[i];
    const TablePage& page = all.pages[i];
    report.parts.push_back(
        {comparison.base_name,
         [&] { return fmt::format("# {}\n\n{}", comparison.base_name, shown_as(page.compared, "md")); },
         [&] { return shown_as(page.compared, "csv"); },
         [&] { return table_page(comparison, set, page.compared, page.pictures); }});
    const int exit = exit_of(options.fail_on, page.compared, comparison.base_name);
    if (worst != kDifference && exit != kFine) worst = exit;
  }
  report.json_name = "comparisons.json";
  report.json = [&] {
    std::string text;
    JsonWriter json(text, JsonForm::packed);
    json.begin_object();
    json.member("score", "impact");
    json.begin_array("comparisons");
    for (const TablePage& page : all.pages) json.raw(shown_as(page.compared, "json"));
    json.end_array();
    json.end_object();
    json.finish();
    return text;
  };
  report.terminal = [&](bool summary) {
    std::string text;
    for (std::size_t i = 0; i < all.pages.size(); ++i)
      text += fmt::format("{}{}\n{}", i == 0 ? "" : "\n", escape_terminal(set.comparisons[i].base_name),
                          summary ? "" : shown_as(all.pages[i].compared, "terminal"));
    return text;
  };
  if (Status status = deliver(options, report); !status) return status.error();
  return worst;
}

}  // namespace

Result<int> diff_tables(const DiffOptions& options) {
  const bool tables = !begins_with_traces(options);
  TableComparisons all;
  all.tolerance = parse_share(options.tolerance).value_or(0);
  const deepdive::ComparisonSet& set = all.set;
  if (Status status = tables ? compare_tables(options, all) : compare_traces(options, all); !status)
    return status.error();
  if (set.comparisons.empty())
    return input_error("the two sides hold no process to compare", options.inputs[0],
                       "look at what they recorded, or record again");
  if (options.score == "impact") return deliver_by_impact(options, all);
  DiffReport report;
  for (std::size_t i = 0; i < set.comparisons.size(); ++i) {
    const deepdive::Comparison& comparison = set.comparisons[i];
    const TablePage& page = all.pages[i];
    report.parts.push_back({comparison.base_name, [&] { return deepdive::comparison_markdown(comparison, set); },
                            [&] { return deepdive::comparison_csv(comparison); },
                            [&] { return table_page(comparison, set, page.compared, page.pictures); }});
  }
  report.json_name = "comparisons.json";
  report.json = [&] { return deepdive::comparisons_json(set); };
  report.terminal = [&](bool summary) { return deepdive::comparisons_terminal(set, summary ? 0 : kTerminalRows); };
  if (Status status = deliver(options, report); !status) return status.error();
  return kFine;
}

}  // namespace culprit::cli
