#include "library/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "compare/change_point.h"
#include "compare/compare_runs.h"
#include "diagnose/diagnose.h"
#include "diagnose/one_run.h"
#include "diagnose/step_parts.h"
#include "library/run_data.h"
#include "profile/recording.h"
#include "summary/run_picture.h"

namespace culprit::library {

namespace {

/// The steps before that of the number and those from it on, as two runs. nullopt: they are not called different.
Result<std::optional<model::ChangePoint>> compare_parts(const Run& run, const model::Cycles& cycles,
                                                        std::uint32_t number, const DiagnoseOptions& options) {
  Ns first = std::numeric_limits<Ns>::max();
  Ns at = std::numeric_limits<Ns>::max();
  for (const model::Cycle& cycle : cycles.cycles) {
    first = std::min(first, cycle.begin);
    if (cycle.number >= number) at = std::min(at, cycle.begin);
  }
  profile::RecordingOptions part{.anchor = options.anchor, .task = options.task};
  part.within = {{std::numeric_limits<Ns>::min(), at}};
  auto before = profile::recording_of(run.data().trace, files_of(run), part);
  if (!before) return before.error();
  part.within = {{at, std::numeric_limits<Ns>::max()}};
  auto behind = profile::recording_of(run.data().trace, files_of(run), part);
  if (!behind) return behind.error();
  std::vector<model::Recording> base;
  base.push_back(std::move(*before));
  std::vector<model::Recording> candidate;
  candidate.push_back(std::move(*behind));
  auto compared = compare::compare_runs(std::move(base), std::move(candidate), {.tolerance = compare::kLeastChange});
  if (!compared) return compared.error();
  if (compared->outcome != model::Outcome::regression && compared->outcome != model::Outcome::improvement)
    return std::optional<model::ChangePoint>();
  compared->verdicts = diagnose::diagnose(*compared);
  return std::optional(model::ChangePoint{number, at - first, std::move(*compared)});
}

}  // namespace

Result<model::RunDiagnosis> diagnose(const Run& run, const DiagnoseOptions& options, model::RunPicture* picture) {
  const auto recording =
      profile::recording_of(run.data().trace, files_of(run), {.anchor = options.anchor, .task = options.task});
  if (!recording) return recording.error();
  if (recording->cycles.cycles.empty() && !recording->host.scheduling && !recording->host.asleep)
    return input_error(fmt::format("holds no cycles ({}), and nothing ran that was recorded", recording->cycles.reason),
                       path_of(run), "name what begins a cycle (--anchor), or record more of them");
  model::RunDiagnosis result;
  result.files = recording->files;
  result.method = recording->cycles.method;
  result.anchor = recording->cycles.anchor;
  result.cycles = recording->cycles.cycles.size();
  const std::vector<bool> whole = model::whole_periods(recording->cycles);
  const bool any = std::ranges::find(whole, true) != whole.end();
  std::set<std::uint32_t> numbers;
  for (std::size_t c = 0; c < whole.size(); ++c)
    if (whole[c] || !any) numbers.insert(recording->cycles.cycles[c].number);
  result.steps = numbers.size();
  result.per_second = recording->host.per_second;
  if (recording->host.asleep) result.idle = recording->cycles.reason;
  result.step_ns = diagnose::mean_step(*recording);
  result.parts = diagnose::step_parts(*recording);
  result.phases = diagnose::phase_times(*recording);
  result.verdicts = diagnose::diagnose_run(*recording);
  if (picture != nullptr) {
    const auto of_rank = std::ranges::find_if(result.verdicts, [](const model::Verdict& v) { return v.rank >= 0; });
    *picture =
        summary::run_picture(run.data().trace, *recording, summary::usual_phase(recording->cycles, recording->cycles),
                             {}, of_rank == result.verdicts.end() ? -1 : of_rank->rank);
    summary::keep_what_matters(*picture, {}, 0);  // nothing is compared: no function has a row, no series moved
  }
  if (const auto number = compare::change_point(recording->cycles)) {
    auto change = compare_parts(run, recording->cycles, *number, options);
    if (!change) return change.error();
    result.change = std::move(*change);
  }
  return result;
}

}  // namespace culprit::library
