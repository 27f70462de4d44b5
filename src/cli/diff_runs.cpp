// `culprit diff` of traces.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/output.h"
#include "compare/compare_runs.h"
#include "core/hash.h"
#include "core/progress.h"
#include "formats/load.h"
#include "profile/recording.h"
#include "report/run_comparison.h"
#include "trace/builder.h"

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

/// One number per file of both sides, the same for the same content.
std::array<std::vector<std::uint64_t>, 2> contents(const DiffSides& sides) {
  std::vector<const std::string*> files;
  std::array<std::vector<std::uint64_t>, 2> numbers;
  for (std::size_t s = 0; s < 2; ++s)
    for (const std::string& file : s == 0 ? sides.base : sides.candidate) {
      const auto same =
          std::ranges::find_if(files, [&](const std::string* known) { return same_content(*known, file); });
      numbers[s].push_back(static_cast<std::uint64_t>(same - files.begin()) + 1);
      files.push_back(&file);
    }
  return numbers;
}

/// Progress of several loads at once.
class LoadProgress {
 public:
  explicit LoadProgress(std::size_t loads) : progress_("loading", progress_sink_of_stderr()), done_(loads) {}

  formats::LoadOptions options(std::size_t load, const LoadChoice& choice) {
    formats::LoadOptions options = load_options(choice, progress_);
    options.progress = [this, load](std::uint64_t done, std::uint64_t total) {
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

/// One side: a single run is kept until it is known whether it may be compared, several are measured as they come.
struct Side {
  std::vector<model::Recording> recordings;
  std::optional<Trace> trace;
  std::optional<profile::Outline> outline;
};

bool are_ranks(const std::vector<Trace>& traces) {
  std::set<std::int64_t> ranks;
  for (const Trace& trace : traces)
    if (trace.ranks.size() != 1 || trace.ranks.front().rank < 0 || !ranks.insert(trace.ranks.front().rank).second)
      return false;
  return true;
}

std::uint64_t digest_of(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);
  return hash_of(std::span<const std::uint64_t>(numbers));
}

Result<Side> load_side(const std::vector<std::string>& files, const std::vector<std::uint64_t>& numbers,
                       const std::string& anchor, const formats::LoadOptions& load) {
  std::vector<Trace> traces;
  for (const std::string& file : files) {
    auto trace = formats::load_run({file}, load);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  Side side;
  if (traces.size() == 1 || are_ranks(traces)) {
    side.trace = traces.size() == 1 ? std::move(traces.front()) : merge(std::move(traces));
    auto outline = profile::outline_of(*side.trace, files, {anchor});
    if (!outline) return outline.error();
    outline->recording.digest = digest_of(numbers);
    side.outline = std::move(*outline);
    return side;
  }
  for (std::size_t f = 0; f < traces.size(); ++f) {
    auto recording = profile::recording_of(traces[f], {files[f]}, {anchor});
    if (!recording) return recording.error();
    recording->digest = digest_of({numbers[f]});
    side.recordings.push_back(std::move(*recording));
    traces[f] = {};
  }
  return side;
}

/// The recordings of a side; of a single run with its profile when `whole`.
std::vector<model::Recording> take(Side& side, bool whole) {
  if (side.outline) {
    side.recordings.push_back(whole ? profile::complete(*side.trace, std::move(*side.outline))
                                    : std::move(side.outline->recording));
    side.outline.reset();
    side.trace.reset();
  }
  return std::move(side.recordings);
}

/// Runs both at the same time.
template <class First, class Second>
void side_by_side(const First& first, const Second& second) {
  std::thread other(second);
  first();
  other.join();
}

Result<model::RunComparison> compare(const DiffOptions& options) {
  const auto sides = trace_sides(options);
  if (!sides) return sides.error();
  const auto numbers = contents(*sides);
  compare::CompareOptions how;
  how.tolerance = parse_share(options.tolerance).value_or(how.tolerance);
  LoadProgress progress(2);
  const bool same = digest_of(numbers[0]) == digest_of(numbers[1]);
  std::array<std::optional<Result<Side>>, 2> loaded;
  const auto load = [&](std::size_t s) {
    loaded[s].emplace(load_side(s == 0 ? sides->base : sides->candidate, numbers[s], options.anchor,
                                progress.options(s, options.load)));
  };
  if (same)
    load(0);
  else
    side_by_side([&] { load(0); }, [&] { load(1); });
  for (const auto& side : loaded)
    if (side && !*side) return side->error();
  if (same) {
    std::vector<model::Recording> base = take(**loaded[0], false);
    std::vector<model::Recording> candidate(base.size());
    for (std::size_t i = 0; i < base.size(); ++i) candidate[i].digest = base[i].digest;
    return compare::compare_runs(std::move(base), std::move(candidate), how);
  }
  Side& base = **loaded[0];
  Side& candidate = **loaded[1];
  const auto seen = [](const Side& side) {
    return side.outline ? std::span<const model::Recording>(&side.outline->recording, 1)
                        : std::span<const model::Recording>(side.recordings);
  };
  const bool whole = compare::comparability_of(seen(base), seen(candidate)).level != model::Comparable::no;
  std::vector<model::Recording> ours;
  std::vector<model::Recording> theirs;
  side_by_side([&] { ours = take(base, whole); }, [&] { theirs = take(candidate, whole); });
  return compare::compare_runs(std::move(ours), std::move(theirs), how);
}

int exit_of(const std::string& fail_on, model::Outcome outcome) {
  using enum model::Outcome;
  if (fail_on.empty()) return kFine;
  if (outcome == not_comparable) return kUndecided;
  if (fail_on == "not_comparable") return kFine;
  if (outcome == inconclusive) return kUndecided;
  if (fail_on == "inconclusive") return kFine;
  return outcome == regression || (fail_on == "any" && outcome == improvement) ? kDifference : kFine;
}

}  // namespace

bool is_profile_table(const std::string& path) { return path.ends_with(".csv"); }

bool same_content(const std::string& a, const std::string& b) {
  std::error_code code;
  if (!fs::is_regular_file(a, code) || !fs::is_regular_file(b, code)) return false;
  if (fs::equivalent(a, b, code)) return true;
  const std::uintmax_t size = fs::file_size(a, code);
  if (code || size != fs::file_size(b, code) || code) return false;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  std::ifstream first(a, std::ios::binary);
  std::ifstream second(b, std::ios::binary);
  std::string x(kChunk, '\0');
  std::string y(kChunk, '\0');
  while (first && second) {
    first.read(x.data(), kChunk);
    second.read(y.data(), kChunk);
    const auto n = static_cast<std::size_t>(first.gcount());
    if (first.gcount() != second.gcount() || std::string_view(x).substr(0, n) != std::string_view(y).substr(0, n))
      return false;
  }
  return first.eof() && second.eof();
}

Result<DiffSides> trace_sides(const DiffOptions& options) {
  if (options.candidates.empty() && options.inputs.size() != 2)
    return options.inputs.size() == 1
               ? usage_error(fmt::format("only one input given: '{}'", options.inputs[0]), "diff BASE CAND")
               : usage_error("more than two files, and no --vs says where the candidate begins",
                             "diff BASE... --vs CAND...");
  for (const auto* side : {&options.inputs, &options.candidates})
    for (const std::string& path : *side)
      if (is_profile_table(path))
        return usage_error(fmt::format("'{}' is a profile table, the other side is a trace", path),
                           "give traces on both sides, or tables on both sides");
  const bool two = options.candidates.empty();
  auto base = expand(two ? std::vector{options.inputs[0]} : options.inputs);
  if (!base) return base.error();
  auto candidate = expand(two ? std::vector{options.inputs[1]} : options.candidates);
  if (!candidate) return candidate.error();
  return DiffSides{std::move(*base), std::move(*candidate)};
}

Result<int> diff_runs(const DiffOptions& options) {
  const auto compared = compare(options);
  if (!compared) return compared.error();
  const auto markdown = [&] { return report::comparison_markdown(*compared); };
  const auto csv = [&] { return report::comparison_csv(*compared); };
  const auto terminal = [&](bool summary) {
    return report::comparison_terminal(
        *compared, compared->host && !compared->host->states.empty() ? kTerminalRowsBesideHost : kTerminalRows,
        summary);
  };
  const DiffReport report{
      {{"comparison", markdown, csv}}, "comparison.json", [&] { return report::comparison_json(*compared); }, terminal};
  if (Status status = deliver(options, report); !status) return status.error();
  return exit_of(options.fail_on, compared->outcome);
}

}  // namespace culprit::cli
