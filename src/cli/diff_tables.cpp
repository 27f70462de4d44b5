// `culprit diff` of profile tables: what they tell of the impact on their cycles; and `--score suspicion`, the
// comparison of the reference tool, of such tables or of those that it would make of two traces.
#include <culprit/compare_tables.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/output.h"
#include "cli/table_page.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "deepdive/comparison.h"
#include "deepdive/comparison_report.h"
#include "deepdive/pairing.h"
#include "deepdive/perf_csv.h"
#include "deepdive/reference_profile.h"
#include "library/run_data.h"
#include "library/table_comparisons.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTerminalFunctions = 15;

using Pictures = std::array<model::RunPicture, 2>;

/// All comparisons of one invocation.
struct TablePages {
  library::TableComparisons all;
  std::vector<Pictures> pictures;  ///< what a page shows beside each
};

void compare_pair(const deepdive::FilePair& files, const library::TablePair& tables, TablePages& pages) {
  library::TableComparisons& all = pages.all;
  library::compare_pair(files, tables, all);
  for (std::size_t i = pages.pictures.size(); i < all.compared.size(); ++i) {
    const deepdive::Comparison& comparison = all.set.comparisons[i];
    const deepdive::ProcessPair processes{comparison.pairing, comparison.sides[0].pid, comparison.sides[1].pid};
    pages.pictures.push_back(pictures_of_tables(tables[0], tables[1], processes, all.compared[i]));
  }
}

Result<deepdive::FilePairs> find_pairs(const std::vector<std::string>& inputs) {
  std::error_code code;
  if (inputs.size() == 2) {
    auto pair = library::pair_of_tables(inputs[0], inputs[1]);
    if (!pair) return pair.error();
    deepdive::FilePairs pairs;
    pairs.pairs.push_back(std::move(*pair));
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
    auto read =
        deepdive::parse_perf_csv(deepdive::write_perf_csv(table.profile), files.front(), library::reference_decimals());
    if (!read) return read.error();
    table.profile = std::move(*read);
  }
  return tables;
}

Status compare_traces(const DiffOptions& options, TablePages& pages) {
  const auto sides = trace_sides(options);
  if (!sides) return sides.error();
  auto base = tables_of(sides->base, options);
  if (!base) return base.error();
  auto candidate = tables_of(sides->candidate, options);
  if (!candidate) return candidate.error();
  for (deepdive::ReferenceTable& table : *base)
    for (deepdive::ReferenceTable& partner : *candidate) {
      if (table.suffix != partner.suffix) continue;
      deepdive::FilePair files = library::pair_of(sides->base.front(), sides->candidate.front());
      files.suffix = table.suffix;
      compare_pair(files, {std::move(table.profile), std::move(partner.profile)}, pages);
    }
  return {};
}

TableOptions table_options(const DiffOptions& options) {
  TableOptions table;
  table.anchor = options.anchor;
  table.threads = options.load.threads;
  table.max_expansion = options.load.max_expansion;
  return table;
}

Status compare_tables(const DiffOptions& options, TablePages& pages) {
  std::vector<std::string> inputs = options.inputs;
  if (!options.candidates.empty()) {
    if (const auto tables = are_profile_tables(inputs, options.candidates); !tables) return tables.error();
    inputs.push_back(options.candidates.front());
  }
  if (inputs.size() > 2) return usage_error("more than two profile tables", "give BASE.csv and CAND.csv");
  const auto pairs = find_pairs(inputs);
  if (!pairs) return pairs.error();
  if (Status status = library::refuse_options_of_traces(table_options(options)); !status) return status.error();
  pages.all.set.unpaired = pairs->unpaired;
  for (const deepdive::FilePair& files : pairs->pairs) {
    const auto tables = library::read_pair(files);
    if (!tables) return tables.error();
    compare_pair(files, *tables, pages);
    if (inputs.size() == 2) library::note_same_table(files, pages.all);
  }
  return {};
}

/// As traces are compared.
Result<int> deliver_by_impact(const DiffOptions& options, TablePages& pages) {
  library::TableComparisons& all = pages.all;
  library::complete(all);
  const deepdive::ComparisonSet& set = all.set;
  if (all.compared.size() == 1)
    return deliver_comparison(options, all.compared.front(), "diff", pages.pictures.front());
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
    const model::RunComparison& compared = all.compared[i];
    const Pictures& pictures = pages.pictures[i];
    report.parts.push_back({comparison.base_name,
                            [&] { return fmt::format("# {}\n\n{}", comparison.base_name, shown_as(compared, "md")); },
                            [&] { return shown_as(compared, "csv"); },
                            [&] { return table_page(comparison, set, compared, pictures); }});
    const int exit = exit_of(options.fail_on, compared, comparison.base_name);
    if (worst != kDifference && exit != kFine) worst = exit;
  }
  report.json_name = "comparisons.json";
  report.json = [&] {
    std::string text;
    JsonWriter json(text, JsonForm::packed);
    json.begin_object();
    json.member("score", "impact");
    json.begin_array("comparisons");
    for (const model::RunComparison& compared : all.compared) json.raw(shown_as(compared, "json"));
    json.end_array();
    json.end_object();
    json.finish();
    return text;
  };
  report.terminal = [&](bool summary) {
    std::string text;
    for (std::size_t i = 0; i < all.compared.size(); ++i)
      text += fmt::format("{}{}\n{}", i == 0 ? "" : "\n", escape_terminal(set.comparisons[i].base_name),
                          summary ? "" : shown_as(all.compared[i], "terminal"));
    return text;
  };
  if (Status status = deliver(options, report); !status) return status.error();
  return worst;
}

}  // namespace

Result<int> diff_tables(const DiffOptions& options) {
  const bool tables = !begins_with_traces(options);
  TablePages pages;
  library::TableComparisons& all = pages.all;
  all.tolerance = parse_share(options.tolerance).value_or(0);
  const deepdive::ComparisonSet& set = all.set;
  if (Status status = tables ? compare_tables(options, pages) : compare_traces(options, pages); !status)
    return status.error();
  if (Status status = library::expect_comparisons(all, options.inputs[0]); !status) return status.error();
  if (options.score == "impact") return deliver_by_impact(options, pages);
  DiffReport report;
  for (std::size_t i = 0; i < set.comparisons.size(); ++i) {
    const deepdive::Comparison& comparison = set.comparisons[i];
    const model::RunComparison& compared = all.compared[i];
    const Pictures& pictures = pages.pictures[i];
    report.parts.push_back({comparison.base_name, [&] { return deepdive::comparison_markdown(comparison, set); },
                            [&] { return deepdive::comparison_csv(comparison); },
                            [&] { return table_page(comparison, set, compared, pictures); }});
  }
  report.json_name = "comparisons.json";
  report.json = [&] { return deepdive::comparisons_json(set); };
  report.terminal = [&](bool summary) { return deepdive::comparisons_terminal(set, summary ? 0 : kTerminalFunctions); };
  if (Status status = deliver(options, report); !status) return status.error();
  return kFine;
}

}  // namespace culprit::cli
