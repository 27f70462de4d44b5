#include "ab/conclude.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ab/recorded_steps.h"
#include "compare/compare_runs.h"
#include "diagnose/diagnose.h"

namespace culprit::ab {

namespace {

/// At most kMostRuns, spread evenly.
std::vector<std::string> chosen(const std::vector<std::string>& files) {
  if (files.size() <= kMostRuns) return files;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < kMostRuns; ++i) some.push_back(files[i * (files.size() - 1) / (kMostRuns - 1)]);
  return some;
}

/// The whole run is the unit of work.
void count_as_one(model::WorkUnits& work) {
  model::WorkUnit run;
  run.kind = model::UnitKind::process;
  run.process = "the command";
  run.count = 1;
  run.threads = 1;
  run.confidence = 1;
  run.reason = "each recording is one run";
  run.per_window.assign(work.windows.size(), 1 / static_cast<double>(std::max<std::size_t>(work.windows.size(), 1)));
  work.units = {run};
  work.latencies.clear();
  work.answers.clear();
  work.starts.clear();
}

Result<model::RunComparison> compare(const Alternated& alternated) {
  std::array<std::vector<model::Recording>, 2> recordings;
  for (std::size_t side = 0; side < 2; ++side)
    for (const std::string& file : chosen(alternated.recordings[side])) {
      auto recording = recording_of(file, alternated.turns[side]);
      if (!recording) return recording.error();
      if (!alternated.found.in_turns && recording->work) count_as_one(*recording->work);
      recordings[side].push_back(std::move(*recording));
    }
  // Runs without steps are compared by what their threads did, which takes scheduling.
  const auto tells = [](const model::Recording& one) {
    return !one.cycles.cycles.empty() || (one.work && one.work->recorded);
  };
  if (!alternated.found.in_turns)
    for (const auto& side : recordings)
      if (std::ranges::none_of(side, tells))
        return environment_error("the runs have no steps, and what their threads did was not recorded", "",
                                 "run as root: 'culprit doctor' says what is missing");
  compare::CompareOptions options;
  options.tolerance = alternated.found.detect;
  return compare::compare_runs(std::move(recordings[0]), std::move(recordings[1]), options);
}

}  // namespace

model::RunComparison conclude(const Alternated& alternated, bool kept) {
  model::RunComparison result;
  std::string trouble;
  if (!alternated.recordings[0].empty() && !alternated.recordings[1].empty()) {
    auto compared = compare(alternated);
    if (compared)
      result = std::move(*compared);
    else
      trouble = to_string(compared.error());
    if (result.outcome == model::Outcome::not_comparable) trouble = std::exchange(result.why, {});
  }
  if (!kept)
    for (model::ComparedSide& side : result.sides) side.files.clear();
  result.alternation = alternated.found;
  result.outcome = alternated.found.outcome;
  if (result.outcome != model::Outcome::inconclusive) result.why.clear();  // of the recordings as two of any day
  if (!trouble.empty())
    result.alternation->notes.push_back(fmt::format("Where it comes from is not known: {}", trouble));
  result.verdicts = diagnose::diagnose(result);
  return result;
}

}  // namespace culprit::ab
