// `culprit diff` of traces.
#include <culprit/compare_tables.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/progress.h"
#include "library/compare.h"
#include "library/same_content.h"
#include "report/comparison_files.h"
#include "report/html.h"
#include "report/run_comparison.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTerminalRows = 12;
constexpr std::size_t kTerminalRowsBesideHost = 5;  ///< where the table of thread states says more

bool looks_like_trace(const fs::path& path) {
  const std::string name = path.filename().string();
  return std::ranges::any_of(std::array{".json", ".json.gz", ".json.zst", ".pftrace", ".perfetto-trace"},
                             [&](const char* end) { return name.ends_with(end); }) &&
         !name.ends_with(".truth.json");
}

Result<std::vector<std::string>> expand(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, code))
      if (looks_like_trace(entry.path())) found.push_back(entry.path().string());
    if (code) return input_error("cannot be listed", path, "check its permissions");
    if (found.empty())
      return usage_error(
          fmt::format("'{}' is a directory without traces (*.json, .json.gz, .json.zst, .pftrace, .perfetto-trace)",
                      path),
          "name files, or one directory with normal_perf_data and abnormal_perf_data");
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// Progress of several loads at once.
class LoadProgress {
 public:
  explicit LoadProgress(std::size_t loads) : progress_("loading", progress_sink_of_stderr()), done_(loads) {}

  LoadOptions options(std::size_t load, const LoadChoice& choice) {
    LoadOptions options = load_options(choice, progress_);
    options.task.progress = [this, load](std::string_view, std::uint64_t done, std::uint64_t total) {
      const std::scoped_lock lock(mutex_);
      done_[load] = {done, total};
      std::pair<std::uint64_t, std::uint64_t> all{0, 0};
      for (const auto& [d, t] : done_) all = {all.first + d, all.second + t};
      progress_.update(all.first, all.second);
    };
    return options;
  }

 private:
  std::mutex mutex_;
  Progress progress_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> done_;
};

/// The files of both sides hold the same.
bool same_recordings(const DiffSides& sides) {
  const auto states_of = [](const std::vector<std::string>& paths) {
    std::vector<library::FileState> states;
    states.reserve(paths.size());
    for (const std::string& path : paths) states.push_back(library::state_of(path));
    return states;
  };
  const auto numbers = library::content_numbers({states_of(sides.base), states_of(sides.candidate)});
  return library::digest_of(numbers[0]) == library::digest_of(numbers[1]);
}

using Pictures = std::array<model::RunPicture, 2>;

Result<model::RunComparison> compare(const DiffOptions& options, Pictures* pictures) {
  const auto sides = trace_sides(options);
  if (!sides) return sides.error();
  CompareOptions how;
  how.anchor = options.anchor;
  how.tolerance = parse_share(options.tolerance).value_or(how.tolerance);
  std::optional<Result<std::vector<Run>>> base;
  std::optional<Result<std::vector<Run>>> candidate;
  {
    LoadProgress progress(2);
    std::optional<std::jthread> other;
    if (!same_recordings(*sides))
      other.emplace([&] { candidate = load_recordings(sides->candidate, progress.options(1, options.load)); });
    base = load_recordings(sides->base, progress.options(0, options.load));
  }
  if (!candidate) candidate = base;
  for (const auto* side : {&*base, &*candidate})
    if (!*side) return side->error();
  LoadProgress progress(options.history.size());
  std::vector<library::Earlier> earlier;
  for (std::size_t i = 0; i < options.history.size(); ++i)
    earlier.emplace_back([&progress, &options, i]() -> Result<std::vector<Run>> {
      const auto paths = expand({options.history[i]});
      if (!paths) return paths.error();
      return load_recordings(*paths, progress.options(i, options.load));
    });
  return library::compare(std::move(**base), std::move(**candidate), how, earlier, pictures);
}

void warn(std::string_view part, std::string_view text) {
  const std::string line =
      fmt::format("culprit: warning: {}{}{}\n", escape_terminal(part), part.empty() ? "" : ": ", text);
  [[maybe_unused]] const int written = std::fputs(line.c_str(), stderr);
}

}  // namespace

int exit_of(const std::string& fail_on, const model::RunComparison& comparison, std::string_view part) {
  using enum model::Outcome;
  const model::Outcome outcome = comparison.outcome;
  if (fail_on.empty()) return kFine;
  if (comparison.same_recording) {  // a gate that was given one file twice would never end with anything else
    if (fail_on == "inconclusive" || fail_on == "not_comparable") return kUndecided;
    warn(part, "nothing was compared; '--fail-on not_comparable' does not let that pass");
    return kFine;
  }
  if (outcome == not_comparable) return kUndecided;
  if (fail_on == "not_comparable") return kFine;
  if (outcome == regression || (fail_on == "any" && outcome == improvement)) return kDifference;
  if (outcome != inconclusive) return kFine;
  if (fail_on == "inconclusive") return kUndecided;
  warn(part, "nothing could be decided; '--fail-on inconclusive' does not let that pass");
  return kFine;
}

Result<DiffSides> trace_sides(const DiffOptions& options) {
  if (options.candidates.empty() && options.inputs.size() != 2)
    return options.inputs.size() == 1
               ? usage_error(fmt::format("only one input given: '{}'", options.inputs[0]), "diff BASE CAND")
               : usage_error("more than two files, and no --vs says where the candidate begins",
                             "diff BASE... --vs CAND...");
  const bool two = options.candidates.empty();
  const std::vector<std::string> base_inputs = two ? std::vector{options.inputs[0]} : options.inputs;
  const std::vector<std::string> candidate_inputs = two ? std::vector{options.inputs[1]} : options.candidates;
  if (const auto tables = are_profile_tables(base_inputs, candidate_inputs); !tables) return tables.error();
  auto base = expand(base_inputs);
  if (!base) return base.error();
  auto candidate = expand(candidate_inputs);
  if (!candidate) return candidate.error();
  return DiffSides{std::move(*base), std::move(*candidate)};
}

namespace {

DiffReport report_of(const DiffOptions& options, const model::RunComparison& comparison, std::string_view verb = "diff",
                     std::span<const model::RunPicture> pictures = {}) {
  return {{{"comparison", [&] { return report::comparison_markdown(comparison); },
            [&] { return report::comparison_csv(comparison); },
            [&comparison, verb, pictures] {
              std::vector<std::string> sides;
              for (std::size_t s = 0; s < comparison.sides.size(); ++s)
                sides.push_back(comparison.alternation ? comparison.alternation->sides[s]
                                                       : fmt::format("{}", fmt::join(comparison.sides[s].files, ", ")));
              return report::comparison_html({verb, CULPRIT_VERSION, std::move(sides)}, comparison, pictures);
            }}},
          [&] { return report::comparison_csv_files(comparison); },
          "comparison.json",
          [&] { return report::comparison_json(comparison); },
          [&](bool summary) {
            return report::comparison_terminal(
                comparison,
                comparison.host && !comparison.host->states.empty() ? kTerminalRowsBesideHost : kTerminalRows, summary,
                options.wide);
          }};
}

}  // namespace

std::string comparison_text(const DiffOptions& options, const model::RunComparison& comparison, std::string_view verb,
                            std::span<const model::RunPicture> pictures) {
  return report_text(options, report_of(options, comparison, verb, pictures));
}

Result<int> deliver_comparison(const DiffOptions& options, const model::RunComparison& comparison,
                               std::string_view verb, std::span<const model::RunPicture> pictures) {
  if (Status status = deliver(options, report_of(options, comparison, verb, pictures)); !status) return status.error();
  return exit_of(options.fail_on, comparison);
}

Result<int> diff_runs(const DiffOptions& options) {
  Pictures pictures;
  const auto compared = compare(options, options.format == "html" ? &pictures : nullptr);
  if (!compared) return compared.error();
  return deliver_comparison(options, *compared, "diff", pictures);
}

}  // namespace culprit::cli
