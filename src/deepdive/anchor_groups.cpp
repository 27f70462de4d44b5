#include "deepdive/anchor_groups.h"
#include "stats/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

namespace culprit::deepdive {

namespace {

using model::Phase;

constexpr Ns kUs = 1000;

struct Group {
  std::vector<std::uint32_t> anchors;
  Phase phase = Phase::other;
  Ns begin = 0;
  Ns first_end = 0;
  Ns last_end = 0;
  Ns longest = 0;
};

Group make_group(const std::vector<Anchor>& anchors, std::vector<std::uint32_t> members, Phase phase) {
  Group group;
  group.phase = phase;
  group.begin = std::numeric_limits<Ns>::max();
  group.first_end = std::numeric_limits<Ns>::max();
  group.last_end = std::numeric_limits<Ns>::min();
  for (const std::uint32_t i : members) {
    group.begin = std::min(group.begin, anchors[i].begin);
    group.first_end = std::min(group.first_end, anchors[i].end);
    group.last_end = std::max(group.last_end, anchors[i].end);
    group.longest = std::max(group.longest, anchors[i].duration());
  }
  group.anchors = std::move(members);
  return group;
}

/// Anchors that begin within half a duration of the earliest one belong together.
void group_prefill(const std::vector<Anchor>& anchors, std::vector<Group>& groups) {
  std::vector<std::uint32_t> left;
  for (std::uint32_t i = 0; i < anchors.size(); ++i)
    if (anchors[i].phase == Phase::prefill) left.push_back(i);
  for (std::size_t i = 0; i < left.size();) {
    const Anchor& first = anchors[left[i]];
    std::vector<std::uint32_t> members;
    for (; i < left.size() && (members.empty() || anchors[left[i]].begin < first.begin + first.duration() / 2); ++i)
      members.push_back(left[i]);
    groups.push_back(make_group(anchors, std::move(members), Phase::prefill));
  }
}

void group_by_first_process(const std::vector<Anchor>& anchors, std::vector<Group>& groups) {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (const Anchor& anchor : anchors)
    if (anchor.phase == Phase::decode) smallest = std::min(smallest, anchor.pid);
  for (std::uint32_t i = 0; i < anchors.size(); ++i)
    if (anchors[i].phase == Phase::decode && anchors[i].pid == smallest)
      groups.push_back(make_group(anchors, {i}, Phase::decode));
}

/// Rounds until no anchor is left: the process with most anchors leads, each other process gives the nearest anchor of
/// its own that begins within half a duration.
void group_aligned(const std::vector<Anchor>& anchors, std::vector<Group>& groups) {
  std::map<std::int64_t, std::vector<std::uint32_t>> left;
  for (std::uint32_t i = 0; i < anchors.size(); ++i)
    if (anchors[i].phase == Phase::decode) left[anchors[i].pid].push_back(i);
  while (!left.empty()) {
    auto leader = left.begin();
    for (auto it = left.begin(); it != left.end(); ++it)
      if (it->second.size() > leader->second.size()) leader = it;
    const std::vector<std::uint32_t> lead = std::move(leader->second);
    left.erase(leader);
    std::set<std::uint32_t> used;
    for (const std::uint32_t l : lead) {
      const Anchor& first = anchors[l];
      std::vector<std::uint32_t> members = {l};
      const Ns half = first.duration() / 2;
      for (const auto& [pid, followers] : left) {
        const auto at =
            std::ranges::lower_bound(followers, first.begin, {}, [&](std::uint32_t i) { return anchors[i].begin; });
        std::uint32_t best = kNone;
        // The nearest on either side is the only one that can be nearest of all; the earlier one wins a tie.
        for (auto it = at == followers.begin() ? at : at - 1; it != followers.end() && it - at <= 0; ++it) {
          const Ns distance = std::abs(anchors[*it].begin - first.begin);
          const bool inside = anchors[*it].begin >= first.begin - half && anchors[*it].begin < first.begin + half;
          if (inside && (best == kNone || distance < std::abs(anchors[best].begin - first.begin))) best = *it;
        }
        if (best == kNone) continue;
        members.push_back(best);
        used.insert(best);
      }
      groups.push_back(make_group(anchors, std::move(members), Phase::decode));
    }
    for (auto it = left.begin(); it != left.end();) {
      std::erase_if(it->second, [&](std::uint32_t i) { return used.contains(i); });
      it = it->second.empty() ? left.erase(it) : std::next(it);
    }
  }
}

void emit(std::vector<CycleInterval>& out, Ns begin, Ns end, const Group& group) {
  if (begin < end) out.push_back({begin, end, group.phase, group.anchors});
}

/// The cycle in which every process begins its first step.
std::vector<std::uint32_t> genesis(const std::vector<Anchor>& anchors, const std::vector<const Group*>& chain,
                                   std::size_t processes, CycleInterval& interval) {
  std::map<std::int64_t, std::uint32_t> first;
  for (const Group* group : chain)
    for (const std::uint32_t i : group->anchors) {
      auto [it, fresh] = first.emplace(anchors[i].pid, i);
      if (!fresh && anchors[i].begin < anchors[it->second].begin) it->second = i;
    }
  if (first.size() != processes || first.empty()) return {};
  interval.begin = std::numeric_limits<Ns>::max();
  interval.end = std::numeric_limits<Ns>::min();
  for (const auto& [pid, i] : first) {
    interval.begin = std::min(interval.begin, anchors[i].begin);
    interval.end = std::max(interval.end, anchors[i].end);
  }
  std::set<std::uint32_t> members;
  for (const Group* group : chain)
    for (const std::uint32_t i : group->anchors)
      if (anchors[i].begin >= interval.begin && anchors[i].end <= interval.end + anchors[i].duration() / 10)
        members.insert(i);
  return {members.begin(), members.end()};
}

void cut_chain(const std::vector<Anchor>& anchors, const std::vector<const Group*>& chain, bool align,
               std::size_t processes, std::vector<CycleInterval>& out) {
  if (chain.empty()) return;
  if (!align) {
    Ns cursor = chain.front()->begin;
    for (const Group* group : chain) {
      emit(out, cursor + kUs, group->last_end, *group);
      cursor = group->last_end;
    }
    return;
  }
  CycleInterval first;
  const std::vector<std::uint32_t> members = genesis(anchors, chain, processes, first);
  Ns cursor = chain.front()->first_end;
  if (!members.empty()) {
    first.phase = Phase::decode;
    first.anchors = members;
    out.push_back(first);
    cursor = first.end;
  }
  for (const Group* group : chain) {
    const bool consumed =
        std::ranges::any_of(group->anchors, [&](std::uint32_t i) { return std::ranges::binary_search(members, i); });
    if (consumed) continue;
    emit(out, cursor, group->last_end, *group);
    cursor = group->first_end;
  }
}

}  // namespace

bool type_by_duration(std::vector<Anchor>& anchors) {
  constexpr Ns kShortest = 1000 * kUs;
  constexpr double kTimesLonger = 3;
  std::vector<double> durations;
  for (const Anchor& anchor : anchors)
    if (anchor.duration() > kShortest) durations.push_back(static_cast<double>(anchor.duration()));
  if (durations.size() < 3) return false;
  std::ranges::sort(durations);
  const double median = stats::quantile_of_sorted(durations, 0.5);
  const double threshold = stats::quantile_of_sorted(durations, 0.8);
  if (!(durations.back() / median > kTimesLonger)) return false;
  for (Anchor& anchor : anchors) {
    const auto duration = static_cast<double>(anchor.duration());
    anchor.phase = duration > threshold && duration > kTimesLonger * median ? Phase::prefill : Phase::decode;
  }
  return true;
}

std::vector<CycleInterval> cycle_intervals(const std::vector<Anchor>& anchors, bool align) {
  std::vector<Group> groups;
  group_prefill(anchors, groups);
  if (align)
    group_aligned(anchors, groups);
  else
    group_by_first_process(anchors, groups);
  for (std::uint32_t i = 0; i < anchors.size(); ++i)
    if (anchors[i].phase == Phase::other) groups.push_back(make_group(anchors, {i}, Phase::other));
  std::ranges::stable_sort(groups, {}, &Group::begin);

  std::vector<double> longest;
  std::set<std::int64_t> pids;
  for (const Group& group : groups) {
    if (group.phase != Phase::decode) continue;
    longest.push_back(static_cast<double>(group.longest));
    for (const std::uint32_t i : group.anchors) pids.insert(anchors[i].pid);
  }
  std::ranges::sort(longest);
  constexpr double kShortestIdle = 50'000.0 * kUs;
  const double idle =
      longest.empty() ? kShortestIdle : std::max(5 * stats::quantile_of_sorted(longest, 0.5), kShortestIdle);

  std::vector<CycleInterval> intervals;
  std::vector<const Group*> chain;
  const auto close = [&] {
    cut_chain(anchors, chain, align, pids.size(), intervals);
    chain.clear();
  };
  for (const Group& group : groups) {
    if (group.phase != Phase::decode) {
      close();
      emit(intervals, group.begin, group.last_end, group);
      continue;
    }
    if (!chain.empty() && static_cast<double>(group.begin - chain.back()->last_end) >= idle) close();
    chain.push_back(&group);
  }
  close();
  std::ranges::stable_sort(intervals, {}, &CycleInterval::begin);
  return intervals;
}

void repair_phases(std::vector<ReferenceCycle>& cycles) {
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    if (cycles[i].phase != Phase::other) continue;
    const Phase before = i == 0 ? Phase::other : cycles[i - 1].phase;
    const Phase after = i + 1 == cycles.size() ? Phase::other : cycles[i + 1].phase;
    if (before == Phase::other || after == Phase::other) {
      cycles[i].phase = before == Phase::other ? after : before;
      continue;
    }
    const auto distance = [&](std::size_t other) {
      return std::abs((cycles[other].end - cycles[other].begin) - (cycles[i].end - cycles[i].begin));
    };
    cycles[i].phase = before == after || distance(i - 1) <= distance(i + 1) ? before : after;
  }
}

}  // namespace culprit::deepdive
