#include "compare/collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace culprit::compare {

namespace {

void add(const CollectiveSums& more, CollectiveSums& sums) {
  sums.cycles += more.cycles;
  sums.calls += more.calls;
  sums.elements += more.elements;
  sums.wait_ns += more.wait_ns;
  sums.transfer_ns += more.transfer_ns;
  sums.held_up_ns += more.held_up_ns;
}

/// By number of a cycle. What any rank tells of a step counts for all of them, as in step_times().
std::map<std::uint32_t, StepKind> kinds_of(const model::Cycles& cycles) {
  std::map<std::uint32_t, StepKind> kinds;
  for (const model::Cycle& cycle : cycles.cycles) {
    if (cycle.partial || cycle.warm_up) continue;
    StepKind& kind = kinds.try_emplace(cycle.number, StepKind{cycle.phase, cycle.phase_guessed, {}}).first->second;
    if (kind.work == WorkClass()) kind.work = work_class(cycle.workload, kind.phase);
  }
  return kinds;
}

using Kinds = std::map<StepKind, CollectiveSums>;

/// Guessed phases as they are, or none.
Kinds of_phases(const Kinds& kinds, bool forget_guessed) {
  Kinds result;
  for (const auto& [kind, sums] : kinds)
    add(sums, result[{kind.guessed && forget_guessed ? model::Phase::other : kind.phase, false, kind.work}]);
  return result;
}

/// Whether the side has enough of it.
bool counts(const CollectiveSums& sums, double all) {
  return sums.cycles >= std::min(static_cast<double>(kFewestAlike), all);
}

model::CollectiveChange change_of(const std::array<Kinds, 2>& sides) {
  model::CollectiveChange change;
  std::array<double, 2> all{};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    for (const auto& [kind, sums] : sides[s]) {
      all[s] += sums.cycles;
      change.wait_ns[s] += sums.wait_ns;
      change.held_up_ns[s] += sums.held_up_ns;
    }
    change.wait_ns[s] /= all[s];
    change.held_up_ns[s] /= all[s];
  }
  change.elements = {0, 0};
  change.knows_work = true;
  double shares = 0;
  for (const auto& [kind, before] : sides[0]) {
    const auto after = sides[1].find(kind);
    if (after == sides[1].end() || !counts(before, all[0]) || !counts(after->second, all[1])) continue;
    const std::array both = {&before, &after->second};
    const double share = (both[0]->cycles / all[0] + both[1]->cycles / all[1]) / 2;
    shares += share;
    change.knows_work = change.knows_work && kind.work != WorkClass();
    for (std::size_t s = 0; s < both.size(); ++s) {
      const double weight = share / both[s]->cycles;
      change.transfer_ns[s] += weight * both[s]->transfer_ns;
      change.calls[s] += weight * both[s]->calls;
      change.elements[s] += weight * both[s]->elements;
    }
  }
  if (shares > 0)
    for (auto* sums : {&change.transfer_ns, &change.calls, &change.elements})
      for (double& sum : *sums) sum /= shares;
  return change;
}

}  // namespace

void add_collectives(const model::Recording& recording, CollectivesOfSide& side) {
  if (recording.collectives.empty()) return;
  const std::map<std::uint32_t, StepKind> kinds = kinds_of(recording.cycles);
  for (const model::RankCollectives& rank : recording.collectives)
    for (const model::StepCollectives& step : rank.steps)
      if (const auto kind = kinds.find(step.number); kind != kinds.end())
        add({1, static_cast<double>(step.calls), step.elements, step.wait_ns, step.transfer_ns, step.held_up_ns},
            side[rank.rank][kind->second]);
}

std::vector<model::CollectiveChange> collective_changes(const CollectivesOfSide& base,
                                                        const CollectivesOfSide& candidate, bool forget_guessed) {
  std::vector<model::CollectiveChange> changes;
  for (const auto& [rank, before] : base) {
    const auto after = candidate.find(rank);
    if (after == candidate.end()) continue;
    changes.push_back(change_of({of_phases(before, forget_guessed), of_phases(after->second, forget_guessed)}));
    changes.back().rank = rank;
  }
  return changes;
}

}  // namespace culprit::compare
