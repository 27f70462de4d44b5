#include "compare/align_ranks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

namespace culprit::compare {

namespace {

using model::Recording;

std::set<std::int32_t> ranks_of(const Recording& recording) {
  std::set<std::int32_t> ranks;
  for (const model::ProfileProcess& process : recording.profile.processes) ranks.insert(process.rank);
  for (const model::ProfileCycle& cycle : recording.profile.cycles) ranks.insert(cycle.rank);
  ranks.erase(-1);
  return ranks;
}

void renumber(Recording& recording, const std::map<std::int32_t, std::int32_t>& numbers) {
  const auto change = [&](std::int32_t& rank) {
    if (const auto known = numbers.find(rank); known != numbers.end()) rank = known->second;
  };
  for (model::ProfileProcess& process : recording.profile.processes) change(process.rank);
  for (model::ProfileCycle& cycle : recording.profile.cycles) change(cycle.rank);
  for (model::ResourceSeries& series : recording.profile.series) change(series.rank);
  for (model::RankCollectives& rank : recording.collectives) change(rank.rank);
  for (std::int32_t& rank : recording.rank_numbers) change(rank);
}

}  // namespace

void put_in_order(std::vector<Recording>& side) {
  const auto begin_of = [](const Recording& r) {
    return r.profile.cycles.empty() ? Ns{0} : r.profile.cycles.front().begin;
  };
  std::ranges::stable_sort(side, [&](const Recording& a, const Recording& b) {
    const Ns begins[] = {begin_of(a), begin_of(b)};
    return std::tie(begins[0], a.files) < std::tie(begins[1], b.files);
  });
}

void align_ranks(std::vector<Recording>& base, std::vector<Recording>& candidate) {
  if (base.empty()) return;
  const std::set<std::int32_t> usual = ranks_of(base.front());
  for (auto* side : {&base, &candidate})
    for (Recording& recording : *side) {
      const std::set<std::int32_t> own = ranks_of(recording);
      if (std::ranges::any_of(own, [&](std::int32_t rank) { return usual.contains(rank); })) continue;
      std::map<std::int32_t, std::int32_t> numbers;
      auto mine = own.begin();
      for (auto theirs = usual.begin(); mine != own.end() && theirs != usual.end(); ++mine, ++theirs)
        numbers.emplace(*mine, *theirs);
      renumber(recording, numbers);
    }
}

}  // namespace culprit::compare
