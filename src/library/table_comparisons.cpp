#include "library/table_comparisons.h"

#include <fmt/format.h>

#include <cstdint>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>

#include "deepdive/comparison_text.h"
#include "deepdive/suspicion.h"
#include "library/same_content.h"
#include "library/table_verdicts.h"
#include "report/run_comparison_tables.h"
#include "report/verdict_report.h"

namespace culprit::library {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNativeProfile = "profile.json";  // what marks the directory of `culprit profile -o`

void note_one_sided(deepdive::ComparisonSet& set, const std::vector<std::int64_t>& pids, const fs::path& file,
                    const fs::path& other) {
  for (const std::int64_t pid : pids)
    set.unpaired.push_back(
        {file.string(), pid,
         fmt::format("{} has no process that is left over to compare it with", other.filename().string())});
}

/// A name that no other comparison of this call has.
std::string distinct_name(const std::string& name, std::set<std::string>& taken) {
  std::string distinct = name;
  for (int n = 2; !taken.insert(distinct).second; ++n) distinct = fmt::format("{}_v{}", name, n);
  return distinct;
}

/// What tables leave out, and who has no partner.
void add_notes(const deepdive::Comparison& comparison, const deepdive::ComparisonSet& set,
               model::RunComparison& compared) {
  const deepdive::NameStyle style{[&](StringId id) { return std::string(comparison.texts[id]); },
                                  [](std::string_view text) { return std::string(text); }};
  for (std::string& note : deepdive::input_notes(comparison, set, style)) compared.notes.push_back(std::move(note));
  for (std::string& note : deepdive::set_notes(set, style)) compared.notes.push_back(std::move(note));
}

}  // namespace

bool is_profile_table(const std::string& path) { return path.ends_with(".csv"); }

Status refuse_native_profile(const std::string& input) {
  std::error_code code;
  const fs::path directory = fs::is_directory(input, code) ? fs::path(input) : fs::path(input).parent_path();
  const std::string name = fs::path(input).filename().string();
  const bool is_part = name == "cycles.csv" || name == "functions.csv" || name == "resources.csv" ||
                       name == "counters.csv" || name == kNativeProfile;
  if ((fs::is_directory(input, code) || is_part) && fs::exists(directory / kNativeProfile, code) &&
      fs::exists(directory / "functions.csv", code))
    return usage_error(fmt::format("'{}' was written by `culprit profile`, which diff does not read", input),
                       "give the traces that it was made of, or tables of `culprit profile --compat deepdive -o DIR`");
  return {};
}

Status refuse_options_of_traces(const TableOptions& options) {
  if (!options.anchor.empty())
    return usage_error("--anchor is for traces: the cycles of profile tables are made already", "leave it out");
  const TableOptions usual{};
  for (const auto& [name, given] : {std::pair("--threads", options.threads != usual.threads),
                                    std::pair("--max-expansion", options.max_expansion != usual.max_expansion)})
    if (given) return usage_error(fmt::format("{} is for traces, and these are profile tables", name), "leave it out");
  return {};
}

Error history_needs_traces() {
  return usage_error("--history needs traces on both sides and --score impact",
                     "give the traces, or leave out --history");
}

deepdive::PerfCsvOptions reference_decimals() {
  deepdive::PerfCsvOptions options;
  options.decimals = deepdive::DecimalRule::reference;
  return options;
}

deepdive::FilePair pair_of(const fs::path& base, const fs::path& candidate) {
  const std::string identifier = base.filename() == candidate.filename()
                                     ? base.filename().string()
                                     : fmt::format("{}_vs_{}", base.filename().string(), candidate.filename().string());
  return {base, candidate, identifier, "", ""};
}

Result<deepdive::FilePair> pair_of_tables(const std::string& base, const std::string& candidate) {
  std::error_code code;
  for (const std::string* input : {&base, &candidate})
    if (fs::is_directory(*input, code))
      return usage_error(fmt::format("'{}' is a directory", *input), "give one directory, or two profile tables");
  return pair_of(base, candidate);
}

Result<TablePair> read_pair(const deepdive::FilePair& files) {
  auto other = std::async(std::launch::async,
                          [&] { return deepdive::read_perf_csv(files.candidate.string(), reference_decimals()); });
  auto base = deepdive::read_perf_csv(files.base.string(), reference_decimals());
  auto candidate = other.get();
  if (!base) return base.error();
  if (!candidate) return candidate.error();
  return TablePair{std::move(base).value(), std::move(candidate).value()};
}

void compare_pair(const deepdive::FilePair& files, const TablePair& tables, TableComparisons& all) {
  deepdive::ComparisonSet& set = all.set;
  const auto& [base, candidate] = tables;
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
    all.compared.push_back(std::move(compared));
  }
  note_one_sided(set, processes.base_only, files.base, files.candidate);
  note_one_sided(set, processes.candidate_only, files.candidate, files.base);
  set.inputs.push_back(base.input);
  set.inputs.push_back(candidate.input);
}

void note_same_table(const deepdive::FilePair& files, TableComparisons& all) {
  all.same = same_content(files.base.string(), files.candidate.string());
  if (all.same) all.set.notes.emplace_back("Baseline and candidate are the same table");
}

Status expect_comparisons(const TableComparisons& all, const std::string& base) {
  if (!all.set.comparisons.empty()) return {};
  return input_error("the two sides hold no process to compare", base, "look at what they recorded, or record again");
}

void complete(TableComparisons& all) {
  for (std::size_t i = 0; i < all.compared.size(); ++i) {
    model::RunComparison& compared = all.compared[i];
    if (all.same) {
      model::RunComparison same;
      same.same_recording = true;
      same.outcome = model::Outcome::no_change;
      same.sides = std::move(compared.sides);
      same.processes = std::move(compared.processes);
      compared = std::move(same);
    }
    add_notes(all.set.comparisons[i], all.set, compared);
  }
}

}  // namespace culprit::library
