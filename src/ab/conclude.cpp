#include "ab/conclude.h"

#include <fmt/format.h>

#include <utility>

#include "ab/recorded_steps.h"
#include "compare/compare_runs.h"

namespace culprit::ab {

namespace {

/// At most kMostRuns, spread evenly.
std::vector<std::string> chosen(const std::vector<std::string>& files) {
  if (files.size() <= kMostRuns) return files;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < kMostRuns; ++i) some.push_back(files[i * (files.size() - 1) / (kMostRuns - 1)]);
  return some;
}

Result<model::RunComparison> compare(const Alternated& alternated) {
  std::array<std::vector<model::Recording>, 2> recordings;
  for (std::size_t side = 0; side < 2; ++side)
    for (const std::string& file : chosen(alternated.recordings[side])) {
      auto recording = recording_of(file, alternated.turns[side]);
      if (!recording) return recording.error();
      recordings[side].push_back(std::move(*recording));
    }
  compare::CompareOptions options;
  options.tolerance = alternated.found.detect;
  return compare::compare_runs(std::move(recordings[0]), std::move(recordings[1]), options);
}

}  // namespace

model::RunComparison conclude(const Alternated& alternated) {
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
  result.alternation = alternated.found;
  result.outcome = alternated.found.outcome;
  if (!trouble.empty())
    result.alternation->notes.push_back(fmt::format("Where it comes from is not known: {}", trouble));
  return result;
}

}  // namespace culprit::ab
