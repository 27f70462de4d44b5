#include "compare/judge_phases.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compare/earlier.h"
#include "compare/series.h"

namespace culprit::compare {

namespace {

/// Spread between two recordings of the same that is assumed for want of others. A host is shared with others and
/// drifts; how much, its recordings tell themselves, as a lower bound. A device shares in that for as long as it waits
/// for the host.
double assumed_spread(const std::array<StepsOfSide, 2>& sides, const HowToJudge& how, model::Phase phase,
                      const std::array<std::vector<double>, 2>& values, const Judged& judged) {
  const CompareOptions& options = how.options;
  const auto& [base, candidate] = sides;
  const bool moved = how.known.machine_moved;
  if (how.on_host)
    return std::max({options.between, spread_on_host(options.between_on_host, base.taken, candidate.taken, moved),
                     judged.disturbed[0] ? 0 : drift_inside(values[0]),
                     judged.disturbed[1] ? 0 : drift_inside(values[1])});
  const double waits = std::max(waits_for_host(*base.profile, phase), waits_for_host(*candidate.profile, phase));
  return std::max(
      {spread_on_device(options.between, options.between_on_host, waits, base.taken, candidate.taken, moved),
       drift_beyond_chance(logs_of(values[0])), drift_beyond_chance(logs_of(values[1]))});
}

/// How much recordings of the same differ, and the side whose own recordings tell it, if it is one.
struct SpreadOfSome {
  std::optional<MeasuredSpread> spread;
  std::optional<std::size_t> side;
};

/// That of earlier recordings, else that of a side's own. Recordings of one side tell nothing of what the machine does
/// between it and another that lies apart, or ran on it when it was slower or faster.
SpreadOfSome measured_spread(const std::array<StepsOfSide, 2>& sides, const HowToJudge& how, const Judged& judged,
                             const std::array<std::vector<WorkedTime>, 2>& steps,
                             const std::vector<std::vector<WorkedTime>>& earlier) {
  // Both sides together, so that swapping them changes nothing.
  std::vector<WorkedTime> both = steps[0];
  both.insert(both.end(), steps[1].begin(), steps[1].end());
  SpreadOfSome found{spread_of_steps(both, earlier), std::nullopt};
  if (found.spread || how.known.machine_moved || far_apart(sides[0].taken, sides[1].taken)) return found;
  for (std::size_t s = 0; s < 2 && !found.spread; ++s) {
    if (judged.disturbed.at(s)) continue;
    std::map<std::uint32_t, std::vector<WorkedTime>> recordings;
    for (const WorkedTime& step : steps.at(s)) recordings[step.recording].push_back(step);
    std::vector<std::vector<WorkedTime>> own;
    own.reserve(recordings.size());
    for (auto& [recording, of_one] : recordings) own.push_back(std::move(of_one));
    found.spread = spread_of_steps(both, own);
    if (found.spread) found.side = s;
  }
  return found;
}

}  // namespace

std::vector<model::CycleTimeOutcome> judge_phases(const std::array<StepsOfSide, 2>& sides, const HowToJudge& how,
                                                  WorkOfPhase& matched, const Judged& judged) {
  std::vector<model::CycleTimeOutcome> outcomes;
  const CompareOptions& options = how.options;
  for (const model::Phase phase : how.phases) {
    const auto of_phase = [&](std::span<const StepTime> times) {
      std::vector<WorkedTime> steps;
      for (const StepTime& t : times)
        if ((how.forget && t.guessed ? model::Phase::other : t.phase) == phase)
          steps.push_back({t.work, t.*judged.time, t.recording, t.prompts, t.batch});
      return steps;
    };
    std::array steps = {of_phase(sides[0].times), of_phase(sides[1].times)};
    if (steps[0].empty() || steps[1].empty()) continue;
    const MatchedWork& work = matched[phase] = match_work(steps[0], steps[1]);
    const auto& values = work.times;
    const double session = in_turns(sides[0].taken, sides[1].taken) ? 0
                           : how.on_host                            ? options.between_on_host
                                                                    : options.between;
    const auto is_other = [&](const WorkedTime& step) {
      return !work.classes.empty() && !work.classes.contains(step.work);
    };
    for (std::vector<WorkedTime>& side : steps) std::erase_if(side, is_other);
    std::vector<std::vector<WorkedTime>> steps_of_earlier;
    for (const std::vector<StepTime>& times : how.known.earlier)
      std::erase_if(steps_of_earlier.emplace_back(of_phase(times)), is_other);
    const auto recordings =
        judge_recordings({values[0], work.recordings[0]}, {values[1], work.recordings[1]}, options.tolerance, session);
    const SpreadOfSome measured =
        recordings ? SpreadOfSome{} : measured_spread(sides, how, judged, steps, steps_of_earlier);
    model::CycleTimeOutcome outcome =
        recordings ? *recordings
                   : judge_cycle_time(values[0], values[1],
                                      {.tolerance = options.tolerance,
                                       .between = assumed_spread(sides, how, phase, values, judged),
                                       .disturbed = judged.disturbed,
                                       .counts_as = work.counts_as,
                                       .measured = measured.spread});
    outcome.earlier_side = measured.side;
    outcome.phase = phase;
    outcome.other_work = work.left_out;
    outcome.usual_work = work.most_often;
    outcome.other_share = work.other_share;
    outcome.all_ns = work.all_ns;
    outcome.prompt_tokens = work.prompt_tokens;
    outcome.requests = work.requests;
    outcome.most_requests = work.most_requests;
    outcome.prompts = work.prompts;
    outcome.cached_prompts = work.cached_prompts;
    outcome.looked_back = work.looked_back;
    outcome.knows_context = work.knows_context;
    if (work.left_out[0] + work.left_out[1] > 0 || model::is_judged(outcome)) outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace culprit::compare
