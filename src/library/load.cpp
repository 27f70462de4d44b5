#include <culprit/load.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "formats/load.h"
#include "library/load.h"
#include "library/run_data.h"
#include "trace/builder.h"
#include "trace/join.h"
#include "trace/span.h"

namespace culprit {

static_assert(kUsualExpansion == formats::Expansion::kUsualTimes);

namespace library {

formats::LoadOptions load_options(const LoadOptions& options) {
  formats::LoadOptions load;
  load.threads = options.threads;
  load.max_expansion = options.max_expansion;
  load.stop = options.task.stop;
  if (options.task.progress)
    load.progress = [&task = options.task](std::uint64_t done, std::uint64_t total) {
      task.report("loading", done, total);
    };
  return load;
}

std::vector<std::string> files_of(const Run& run) {
  std::vector<std::string> paths;
  for (const FileState& file : run.data().files) paths.push_back(file.path);
  return paths;
}

std::string path_of(const Run& run) {
  const auto& ranks = run.data().trace.ranks;
  return ranks.empty() ? "" : ranks.front().path;
}

namespace {

bool are_ranks(const std::vector<Trace>& traces) {
  std::set<std::int64_t> ranks;
  for (const Trace& trace : traces)
    if (trace.ranks.size() != 1 || trace.ranks.front().rank < 0 || !ranks.insert(trace.ranks.front().rank).second)
      return false;
  return true;
}

std::vector<FileState> states_of(const std::vector<std::string>& paths) {
  std::vector<FileState> states;
  states.reserve(paths.size());
  for (const std::string& path : paths) states.push_back(state_of(path));
  return states;
}

Run run_of(Trace trace, std::vector<FileState> files) {
  return Run(std::make_shared<const Run::Data>(Run::Data{std::move(trace), std::move(files)}));
}

/// Each recording joined with the trace of the same seconds, or with all of them when they are the ranks of one run.
Result<std::vector<Run>> joined_runs(std::vector<Trace> all, std::vector<FileState> files) {
  struct Part {
    std::optional<Trace> trace;
    std::vector<FileState> files;
  };
  std::vector<Part> parts;
  std::vector<Part> recordings;
  for (std::size_t i = 0; i < all.size(); ++i)
    (is_recording(all[i]) ? recordings : parts).push_back({std::move(all[i]), {std::move(files[i])}});
  std::vector<Trace> ranks;
  ranks.reserve(parts.size());
  for (Part& part : parts) ranks.push_back(std::move(*part.trace));
  if (ranks.size() > 1 && are_ranks(ranks)) {
    Part run{merge(std::move(ranks)), {}};
    for (const Part& part : parts) run.files.insert(run.files.end(), part.files.begin(), part.files.end());
    parts.clear();
    parts.push_back(std::move(run));
  } else {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].trace = std::move(ranks[i]);
  }
  for (Part& recording : recordings) {
    std::optional<Error> why_not;
    const auto home = std::ranges::find_if(parts, [&](const Part& part) {
      const Status status = belong_together(*part.trace, *recording.trace);
      if (!status && !why_not) why_not = status.error();
      return status.ok();
    });
    if (home == parts.end()) return *why_not;
    home->trace = join(std::move(*home->trace), std::move(*recording.trace));
    home->files.push_back(std::move(recording.files.front()));
  }
  std::vector<Run> runs;
  runs.reserve(parts.size());
  for (Part& part : parts) runs.push_back(run_of(std::move(*part.trace), std::move(part.files)));
  return runs;
}

Result<Trace> load_trace(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto trace = formats::load_run(paths, load_options(options));
  if (options.task.stop.stop_requested()) return cancelled_error();
  return trace;
}

}  // namespace
}  // namespace library

Result<Run> load_run(const std::vector<std::string>& paths, const LoadOptions& options) {
  std::vector<library::FileState> files = library::states_of(paths);
  auto trace = library::load_trace(paths, options);
  if (!trace) return trace.error();
  return library::run_of(std::move(*trace), std::move(files));
}

Result<std::vector<Run>> load_recordings(const std::vector<std::string>& paths, const LoadOptions& options) {
  if (paths.empty()) return usage_error("no file given", "name one or more files");
  std::vector<library::FileState> files = library::states_of(paths);
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    auto trace = library::load_trace({path}, options);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  std::vector<Run> runs;
  const auto recorded = std::ranges::count_if(traces, is_recording);
  if (recorded != 0 && static_cast<std::size_t>(recorded) != traces.size())
    return library::joined_runs(std::move(traces), std::move(files));
  if (traces.size() > 1 && library::are_ranks(traces)) {
    runs.push_back(library::run_of(merge(std::move(traces)), std::move(files)));
    return runs;
  }
  for (std::size_t i = 0; i < traces.size(); ++i)
    runs.push_back(library::run_of(std::move(traces[i]), {std::move(files[i])}));
  return runs;
}

std::vector<Loss> losses(const Run& run) {
  std::vector<Loss> found;
  const Losses& counted = run.data().trace.losses;
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const auto reason = static_cast<LossReason>(i);
    if (counted[reason] == 0) continue;
    const LossInfo& about = info(reason);
    found.push_back({std::string(about.name), std::string(to_string(about.severity)), std::string(about.meaning),
                     std::string(about.remedy), std::string(counted.first_seen(reason)), counted[reason]});
  }
  return found;
}

Extent extent_of(const Run& run) {
  const Trace& trace = run.data().trace;
  const Interval span = recorded_span(trace);
  return {library::files_of(run), trace.ranks.size(), trace.slices.size(), trace.gpu.size(), span.end - span.begin};
}

}  // namespace culprit
