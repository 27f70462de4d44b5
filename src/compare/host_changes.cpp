#include "compare/host_changes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "compare/bursts.h"
#include "compare/bystanders.h"
#include "stats/mann_whitney.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using PerPhase = std::array<double, model::kPhases.size()>;

/// Mean per step over the phases in `weights` (which sum to 1).
double per_step(const PerPhase& totals, const model::HostEvidence& side, const PerPhase& weights) {
  double mean = 0;
  for (std::size_t p = 0; p < weights.size(); ++p)
    if (weights[p] > 0) mean += weights[p] * totals[p] / static_cast<double>(side.cycles[p]);
  return mean;
}

bool moved(const model::HostChange& change) {
  if (!change.value[0] || !change.value[1]) return true;
  const double difference = std::abs(*change.value[1] - *change.value[0]);
  return difference > kLeastCounterShare * std::max(std::abs(*change.value[0]), std::abs(*change.value[1]));
}

/// Where the time of a step went.
void add_step(const model::HostEvidence& base, const model::HostEvidence& candidate, const PerPhase& weights,
              model::HostChanges& changes) {
  if (!base.step || !candidate.step) return;
  changes.step_thread = base.step->name;
  for (const auto& [what, times] :
       {std::pair(kOnCpuOfStep.data(), &model::StepThread::on_cpu),
        std::pair(kInRunQueue.data(), &model::StepThread::runnable), std::pair("blocked", &model::StepThread::blocked)})
    changes.step.push_back(
        {what,
         "ns per step",
         {per_step((*base.step).*times, base, weights), per_step((*candidate.step).*times, candidate, weights)}});
}

void add_states(const model::HostEvidence& base, const model::HostEvidence& candidate, const PerPhase& weights,
                model::HostChanges& changes) {
  std::map<std::string, model::HostChange> by_name;
  const std::array sides = {&base, &candidate};
  for (std::size_t s = 0; s < sides.size(); ++s)
    for (const model::HostState& state : sides[s]->states) {
      model::HostChange& change = by_name[state.what];
      if (change.what.empty()) change = {state.what, "ns per step", {0.0, 0.0}};
      change.value[s] = per_step(state.total_ns, *sides[s], weights);
    }
  const double least = kLeastStateShare * per_step(base.period_ns, base, weights);
  const auto difference = [](const model::HostChange& c) { return std::abs(*c.value[1] - *c.value[0]); };
  for (auto& [name, change] : by_name)
    if (difference(change) >= least) changes.states.push_back(std::move(change));
  std::ranges::stable_sort(changes.states, [&](const auto& a, const auto& b) { return difference(a) > difference(b); });
  if (base.per_second) return;
  changes.states.insert(changes.states.begin(),
                        {"period",
                         "ns per step",
                         {per_step(base.period_ns, base, weights), per_step(candidate.period_ns, candidate, weights)}});
}

constexpr double kSureRequests = 0.001;      // p of chance: a screen shows half a dozen kinds
constexpr double kLeastRequestTime = 1e6;    // ns
constexpr double kLeastRequestRatio = 1.35;  // servers were seen to differ by a third between recordings of the same

/// Some values that stand for all: neighbouring requests wait in the same queue and are no independent answers.
std::vector<double> thinned(const std::vector<double>& sorted) {
  constexpr std::size_t kMost = 30;
  if (sorted.size() <= kMost) return sorted;
  std::vector<double> some;
  for (std::size_t i = 0; i < kMost; ++i)
    some.push_back(stats::quantile_of_sorted(sorted, (static_cast<double>(i) + 0.5) / double{kMost}));
  return some;
}

std::vector<model::RequestChange> request_changes(const model::HostEvidence& base,
                                                  const model::HostEvidence& candidate) {
  std::vector<model::RequestChange> changes;
  for (const auto& [what, times] : base.requests) {
    const auto other = candidate.requests.find(what);
    if (other == candidate.requests.end()) continue;
    model::RequestChange& change = changes.emplace_back();
    change.what = what;
    std::array sides = {times, other->second};
    for (std::size_t s = 0; s < sides.size(); ++s) {
      std::ranges::sort(sides[s]);
      change.count[s] = sides[s].size();
      change.median[s] = stats::quantile_of_sorted(sides[s], 0.5);
      change.p99[s] = stats::quantile_of_sorted(sides[s], 0.99);
    }
    const auto [less, more] = std::minmax(change.median[0], change.median[1]);
    change.moved = more > kLeastRequestRatio * less && more - less > kLeastRequestTime &&
                   stats::mann_whitney_p(thinned(sides[0]), thinned(sides[1])) < kSureRequests;
  }
  return changes;
}

}  // namespace

void add_replicate(model::HostEvidence& side, const model::HostEvidence& other) {
  if (side.step && other.step)
    for (auto times : {&model::StepThread::on_cpu, &model::StepThread::runnable, &model::StepThread::blocked})
      for (std::size_t p = 0; p < side.cycles.size(); ++p) ((*side.step).*times)[p] += ((*other.step).*times)[p];
  else if (std::ranges::any_of(side.cycles, [](std::uint64_t n) { return n != 0; }))
    side.step.reset();
  else
    side.step = other.step;
  // Means of recordings of about one length.
  ++side.recordings;
  for (auto rate : {&model::HostEvidence::steps_per_second, &model::HostEvidence::answered_per_second}) {
    const bool both_known = (side.recordings == 1 || side.*rate > 0) && other.*rate > 0;
    side.*rate = both_known ? side.*rate + (other.*rate - side.*rate) / static_cast<double>(side.recordings) : 0;
  }
  for (auto& [name, cpus] : side.beside)
    cpus *= static_cast<double>(side.recordings - 1) / static_cast<double>(side.recordings);
  for (const auto& [name, cpus] : other.beside) side.beside[name] += cpus / static_cast<double>(side.recordings);
  side.behind_others =
      side.behind_others && other.behind_others
          ? *side.behind_others + (*other.behind_others - *side.behind_others) / static_cast<double>(side.recordings)
          : other.behind_others;
  side.stretches.insert(side.stretches.end(), other.stretches.begin(), other.stretches.end());
  for (const auto& [what, times] : other.requests)
    side.requests[what].insert(side.requests[what].end(), times.begin(), times.end());
  side.scheduling = side.scheduling || other.scheduling;
  side.per_second = side.per_second || other.per_second;
  for (std::size_t p = 0; p < side.cycles.size(); ++p) {
    side.cycles[p] += other.cycles[p];
    side.period_ns[p] += other.period_ns[p];
  }
  for (const model::HostState& state : other.states) {
    auto known = std::ranges::find(side.states, state.what, &model::HostState::what);
    if (known == side.states.end()) {
      side.states.push_back(state);
      continue;
    }
    for (std::size_t p = 0; p < state.total_ns.size(); ++p) known->total_ns[p] += state.total_ns[p];
  }
  for (const model::HostCounter& counter : other.counters) {
    auto known = std::ranges::find(side.counters, counter.name, &model::HostCounter::name);
    if (known == side.counters.end()) {
      side.counters.push_back(counter);
      continue;
    }
    const auto samples = static_cast<double>(known->samples + counter.samples);
    const double weight = static_cast<double>(counter.samples) / samples;
    known->mean += weight * (counter.mean - known->mean);
    known->samples += counter.samples;
  }
}

namespace {

std::vector<model::HostChange> beside(const model::HostEvidence& base, const model::HostEvidence& candidate) {
  std::vector<model::HostChange> list;
  for (const auto& [name, cpus] : bystanders_that_moved(base.beside, candidate.beside))
    list.push_back({name, "count", {cpus[0], cpus[1]}});
  return list;
}

/// By name.
std::map<std::string, model::HostChange> counters_of(const model::HostEvidence& base,
                                                     const model::HostEvidence& candidate) {
  std::map<std::string, model::HostChange> counters;
  const std::array sides = {&base, &candidate};
  for (std::size_t s = 0; s < sides.size(); ++s)
    for (const model::HostCounter& counter : sides[s]->counters) {
      model::HostChange& change = counters[counter.name];
      change.what = counter.name;
      change.unit = counter.unit;
      change.value[s] = counter.mean;
    }
  return counters;
}

bool is_felt_limit(const model::HostChange& counter) {
  return counter.what == "cgroup.cpu.quota" ||
         (counter.what.starts_with("cgroup.cpu.throttled") &&
          std::ranges::any_of(counter.value, [](const std::optional<double>& value) { return value.value_or(0) > 0; }));
}

}  // namespace

model::HostChanges surroundings_of(const model::HostEvidence& base, const model::HostEvidence& candidate) {
  model::HostChanges changes;
  changes.scheduling = {base.scheduling, candidate.scheduling};
  if (base.scheduling && candidate.scheduling) {
    changes.beside = beside(base, candidate);
    changes.behind_others = {base.behind_others, candidate.behind_others};
    changes.bursts = bursts_of(base, candidate);
  }
  for (auto& [name, change] : counters_of(base, candidate))
    if (name.starts_with("cgroup.cpu.") && moved(change)) changes.counters.push_back(std::move(change));
  return changes;
}

model::HostChanges host_changes(const model::HostEvidence& base, const model::HostEvidence& candidate) {
  model::HostChanges changes;
  changes.per_second = base.per_second && candidate.per_second;
  changes.scheduling = {base.scheduling, candidate.scheduling};
  changes.steps_per_second = {base.steps_per_second, candidate.steps_per_second};
  PerPhase weights{};
  double all = 0;
  for (std::size_t p = 0; p < weights.size(); ++p)
    if (base.cycles[p] > 0 && candidate.cycles[p] > 0) all += weights[p] = static_cast<double>(base.cycles[p]);
  if (all > 0 && base.scheduling && candidate.scheduling) {
    for (double& weight : weights) weight /= all;
    add_states(base, candidate, weights, changes);
    add_step(base, candidate, weights, changes);
    changes.beside = beside(base, candidate);
    changes.behind_others = {base.behind_others, candidate.behind_others};
    changes.bursts = bursts_of(base, candidate);
  }
  changes.answered_per_second = {base.answered_per_second, candidate.answered_per_second};
  changes.requests = request_changes(base, candidate);
  // Where a side is too short for a sample of any, nothing tells which moved; but a limit that was felt counts.
  const bool unknown = base.counters.empty() || candidate.counters.empty();
  for (auto& [name, change] : counters_of(base, candidate)) {
    if (unknown && !is_felt_limit(change)) continue;
    if (moved(change)) {
      changes.counters.push_back(std::move(change));
      continue;
    }
    ++changes.counters_alike;
    if (is_of_group_memory(name) && change.value[0] && change.value[1]) changes.unshown.push_back(std::move(change));
  }
  return changes;
}

}  // namespace culprit::compare
