#include "compare/pooled_side.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "compare/comparable.h"
#include "compare/host_changes.h"
#include "compare/roles.h"
#include "stats/quantile.h"

namespace culprit::compare {

using model::Recording;

namespace {

std::optional<Ns> median_period(std::span<const Recording> recordings) {
  std::vector<Ns> periods;
  for (const Recording& recording : recordings) {
    const std::vector<bool> whole = model::whole_periods(recording.cycles);
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i]) periods.push_back(recording.cycles.cycles[i].period);
  }
  if (periods.empty()) return std::nullopt;
  return stats::median_of_times(periods);
}

/// What any rank tells of a step counts for all of them, as in step_times().
void spread_workloads(Recording& recording) {
  std::map<std::int64_t, model::Workload> steps;
  for (const model::Cycle& cycle : recording.cycles.cycles)
    if (cycle.workload.batch >= 0 || cycle.workload.tokens >= 0) steps.try_emplace(cycle.number, cycle.workload);
  for (model::ProfileCycle& cycle : recording.profile.cycles)
    if (const auto step = steps.find(cycle.number); step != steps.end()) cycle.workload = step->second;
}

}  // namespace

model::RunFacts facts_of(std::span<const Recording> recordings) {
  model::RunFacts all;
  for (const Recording& recording : recordings) {
    const model::RunFacts& facts = recording.facts;
    all.device_models.insert(facts.device_models.begin(), facts.device_models.end());
    all.ranks.insert(facts.ranks.begin(), facts.ranks.end());
    all.world_size = std::max(all.world_size, facts.world_size);
    all.gpu_work = all.gpu_work || facts.gpu_work;
    all.programs.insert(facts.programs.begin(), facts.programs.end());
    all.presets.insert(facts.presets.begin(), facts.presets.end());
    all.collectors.insert(facts.collectors.begin(), facts.collectors.end());
    all.functions.insert(facts.functions.begin(), facts.functions.end());
    all.options.insert(facts.options.begin(), facts.options.end());
  }
  return all;
}

model::Cycles cycles_of(std::span<const Recording> recordings) {
  model::Cycles all = recordings.front().cycles;
  for (const Recording& recording : recordings.subspan(1)) {
    const model::Cycles& cycles = recording.cycles;
    all.cycles.insert(all.cycles.end(), cycles.cycles.begin(), cycles.cycles.end());
    if (cycles.period_confidence < all.period_confidence) {
      all.period_confidence = cycles.period_confidence;
      all.reason = cycles.reason;
    }
  }
  return all;
}

model::ComparedSide describe(std::span<const Recording> recordings) {
  model::ComparedSide side;
  const model::Cycles cycles = cycles_of(recordings);
  side.recordings = recordings.size();
  side.method = cycles.method;
  side.anchor = cycles.anchor;
  side.reason = cycles.reason;
  side.period_confidence = cycles.period_confidence;
  side.cycles = cycles.cycles.size();
  side.median_period = median_period(recordings);
  for (const Recording& recording : recordings) {
    side.files.insert(side.files.end(), recording.files.begin(), recording.files.end());
    side.events += recording.events;
    side.events_lost += recording.events_lost;
    for (const model::LossCount& loss : recording.losses) {
      const auto known = std::ranges::find(side.losses, loss.reason, &model::LossCount::reason);
      if (known == side.losses.end())
        side.losses.push_back(loss);
      else
        known->count += loss.count;
    }
  }
  return side;
}

void forget_work_of(Recording& recording) {
  forget_work(recording.cycles.cycles);
  forget_work(recording.profile.cycles);
  forget_phases(recording.host);
}

bool align_cached_tokens(std::vector<Recording>& base, std::vector<Recording>& candidate,
                         const std::vector<const Recording*>& earlier) {
  const auto knows = [](const Recording& recording) {
    const auto& cycles = recording.cycles.cycles;
    return std::ranges::none_of(cycles, [](const auto& c) { return c.phase == model::Phase::decode; }) ||
           std::ranges::any_of(cycles, [](const auto& c) { return c.workload.cached_tokens >= 0; });
  };
  if (std::ranges::all_of(base, knows) && std::ranges::all_of(candidate, knows) &&
      std::ranges::all_of(earlier, [&](const Recording* recording) { return knows(*recording); }))
    return true;
  for (auto* side : {&base, &candidate})
    for (Recording& recording : *side) {
      for (model::Cycle& cycle : recording.cycles.cycles) cycle.workload.cached_tokens = -1;
      for (model::ProfileCycle& cycle : recording.profile.cycles) cycle.workload.cached_tokens = -1;
    }
  return false;
}

PooledSide pool(std::vector<Recording> recordings) {
  PooledSide side;
  side.cycles = cycles_of(recordings);
  for (Recording& recording : recordings) {
    spread_workloads(recording);
    const auto add = [&](std::vector<StepTime> times, std::vector<StepTime>& to) {
      for (StepTime& time : times) time.recording = static_cast<std::uint32_t>(side.begins.size());
      std::ranges::move(times, std::back_inserter(to));
    };
    add(step_times(recording.cycles), side.times);
    for (std::size_t row = 0; recording.rank_numbers.size() > 1 && row < recording.rank_numbers.size(); ++row)
      add(step_times(recording.cycles, static_cast<std::uint16_t>(row)),
          side.times_of_rank[recording.rank_numbers[row]]);
    if (const auto& cycles = recording.cycles.cycles; !cycles.empty()) {
      Ns end = 0;
      Ns begin = std::numeric_limits<Ns>::max();
      for (const model::Cycle& cycle : cycles) {
        begin = std::min(begin, cycle.begin);
        end = std::max(end, cycle.begin + cycle.period);
      }
      side.lasting += end - begin;
    }
    side.begins.push_back(recording.profile.cycles.empty() ? 0 : recording.profile.cycles.front().begin);
    add_replicate(side.host, recording.host);
    for (const auto& [key, values] : recording.environment) side.environment[key].insert(values.begin(), values.end());
    add_resources(recording.profile, side.resources);
    add_collectives(recording, side.collectives);
    if (&recording == &recordings.front())
      side.profile = std::move(recording.profile);
    else
      append_replicate(side.profile, recording.profile);
  }
  return side;
}

}  // namespace culprit::compare
