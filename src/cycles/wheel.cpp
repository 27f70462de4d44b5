#include "cycles/wheel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cycles/confidence.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMaxMembers = 64;

/// How much the operation after `before` looks like the begin of a step, apart from the gap.
double boundary_weight(Role before, Role at) {
  double weight = 1;
  if (ends_step(before) && before != Role::copy_out) weight *= 8;
  if (before == Role::copy_out) weight *= 6;
  if (begins_step(before)) weight *= 0.25;
  if (begins_step(at)) weight *= 4;
  if (ends_step(at) || at == Role::loss) weight *= 0.25;
  return weight;
}

struct Begin {
  std::size_t member = 0;  // the first token of the class at or after the begin
  std::uint32_t back = 0;
  std::uint64_t name = 0;
  double gap_ratio = 10;
  bool clear = false;
  bool fits_recording = false;
};

struct Pause {
  std::uint32_t back;
  std::uint32_t at;
  double weighted;
};

/// The most frequent distance of the pauses from the token, kept when most of them agree.
std::vector<Pause> agreeing(std::vector<Pause> pauses) {
  std::map<std::uint32_t, std::size_t> votes;
  for (const Pause& p : pauses) ++votes[p.back];
  const auto best = std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; });
  if (best == votes.end() || best->second * 2 < pauses.size()) return {};
  std::erase_if(pauses, [&](const Pause& p) { return p.back != best->first; });
  return pauses;
}

bool clear_begin(const std::vector<Operation>& list, std::uint32_t at) {
  return begins_step(list[at].role) || (at > 0 && ends_step(list[at - 1].role));
}

/// Profilers that count steps record whole ones: then the first operation of the recording begins a step and the last
/// ends one. nullopt unless the recording holds whole steps so counted; with it the weighted median gap.
std::optional<std::pair<Begin, double>> begin_of_recording(const std::vector<Operation>& list,
                                                           const std::vector<Token>& tokens,
                                                           const std::vector<Member>& members) {
  std::size_t m = 0;
  for (std::size_t k = 1; k < members.size(); ++k)
    if (tokens[members[k].token].at.front() < tokens[members[m].token].at.front()) m = k;
  const std::vector<std::uint32_t>& at = tokens[members[m].token].at;
  std::uint32_t origin = 0;
  while (origin < at.front() && list[origin].role == Role::sync) ++origin;
  const std::uint32_t back = at.front() - origin;
  const double length = static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1);
  const double tail = static_cast<double>(list.size() - (at.back() - back));
  if (back > length * 0.25 || std::abs(tail - length) > length * 0.02 + 2) return std::nullopt;
  std::vector<double> weighted;
  for (std::size_t k = 1; k < at.size(); ++k) {
    const std::uint32_t i = at[k] - back;
    if (at[k] < back + 1 || list[i].name != list[origin].name) continue;
    weighted.push_back((static_cast<double>(gap_before(list, i)) + 1000) *
                       boundary_weight(list[i - 1].role, list[i].role));
  }
  if (weighted.size() * 3 < (at.size() - 1) * 2) return std::nullopt;
  return std::pair(Begin{m, back, list[origin].name, 10, clear_begin(list, at.back() - back), true},
                   stats::median(std::move(weighted)));
}

/// Where a step begins: at the largest median launch gap that keeps its place between two tokens of the class. Gaps
/// count more after what ends a step and before what begins one.
Begin find_begin(const std::vector<Operation>& list, const std::vector<Token>& tokens,
                 const std::vector<Member>& members) {
  Begin begin;
  std::vector<std::uint32_t> all;  // occurrences of any member: a begin is told by the first of them after it
  for (const Member& member : members)
    all.insert(all.end(), tokens[member.token].at.begin(), tokens[member.token].at.end());
  std::ranges::sort(all);
  double best = -1;
  double second = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Token& right = tokens[members[m].token];
    std::vector<Pause> pauses;
    for (const std::uint32_t to : right.at) {
      const auto here = std::ranges::lower_bound(all, to);
      const std::uint32_t from = here == all.begin() ? 0 : *std::prev(here);
      Pause pause{0, to, -1};
      for (std::uint32_t i = from + 1; i <= to; ++i) {
        if (list[i].role == Role::sync) continue;
        const double weighted =
            (static_cast<double>(gap_before(list, i)) + 1000) * boundary_weight(list[i - 1].role, list[i].role);
        if (weighted > pause.weighted) pause = {to - i, i, weighted};
      }
      if (pause.weighted >= 0) pauses.push_back(pause);
    }
    pauses = agreeing(std::move(pauses));
    if (pauses.empty()) continue;
    std::vector<double> weighted;
    weighted.reserve(pauses.size());
    for (const Pause& p : pauses) weighted.push_back(p.weighted);
    const double score = stats::median(weighted);
    if (score <= best) {
      second = std::max(second, score);
      continue;
    }
    second = best;
    best = score;
    const std::uint32_t at = pauses.back().at;
    begin = {m, pauses.front().back, list[at].name, 10, clear_begin(list, at), false};
  }
  if (const std::optional<std::pair<Begin, double>> whole = begin_of_recording(list, tokens, members);
      whole && whole->second * confidence::kWholeSteps > best) {
    second = best;
    best = whole->second * confidence::kWholeSteps;
    begin = whole->first;
  }
  begin.gap_ratio = second > 0 ? best / second : 10;
  return begin;
}

/// The begin of the step whose first token is operation `at`: as many operations earlier as usual, or beside that,
/// where what usually runs first follows the largest gap, so that a lost operation does not move the begin.
std::uint32_t begin_before(const std::vector<Operation>& list, const Wheel& wheel, std::uint32_t at,
                           std::uint32_t least) {
  if (wheel.back == 0) return at;
  const std::uint32_t usual = std::max(least, at > wheel.back ? at - wheel.back : 0);
  std::uint32_t best = std::min(usual, at);
  Ns gap = -1;
  for (std::uint32_t i = usual > least + 3 ? usual - 3 : least; i <= usual + 3 && i <= at; ++i) {
    if (list[i].name != wheel.first_name) continue;
    const Ns mine = i == 0 ? std::numeric_limits<Ns>::max() : gap_before(list, i);
    if (mine > gap) {
      gap = mine;
      best = i;
    }
  }
  return best;
}

/// A stretch in which the host does nothing but wait is no cycle: what came before it waits.
void drop_waits(const std::vector<Operation>& list, std::vector<std::uint32_t>& cuts) {
  std::size_t kept = 0;
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    const std::uint32_t end = c + 1 < cuts.size() ? cuts[c + 1] : static_cast<std::uint32_t>(list.size());
    const auto works = [](const Operation& op) { return op.role != Role::sync; };
    if (std::any_of(list.begin() + cuts[c], list.begin() + end, works)) cuts[kept++] = cuts[c];
  }
  cuts.resize(kept);
}

}  // namespace

Wheel build_wheel(const std::vector<Operation>& list, const std::vector<Token>& tokens, const TokenClass& c) {
  std::vector<Member> members = c.members;
  // The steadiest members, names before pairs.
  std::ranges::stable_sort(members, [&](const Member& a, const Member& b) {
    const bool pa = tokens[a.token].kind == TokenKind::pair;
    const bool pb = tokens[b.token].kind == TokenKind::pair;
    const double wa = weight_of(tokens[a.token].role);
    const double wb = weight_of(tokens[b.token].role);
    if ((wa > 0) != (wb > 0)) return wa > 0;
    if (pa != pb) return pb;
    return a.alternation > b.alternation;
  });
  if (members.size() > kMaxMembers) members.resize(kMaxMembers);
  std::ranges::stable_sort(members, [](const Member& a, const Member& b) { return a.place < b.place; });

  const Begin begin = find_begin(list, tokens, members);
  std::ranges::rotate(members, members.begin() + static_cast<std::ptrdiff_t>(begin.member));

  Wheel wheel;
  wheel.fits_recording = begin.fits_recording;
  wheel.gap_ratio = begin.gap_ratio;
  wheel.clear_begin = begin.clear;
  wheel.back = begin.back;
  wheel.first_name = begin.name;
  const Token& start = tokens[members.front().token];
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i + 1 < start.at.size(); ++i) lengths.push_back(start.at[i + 1] - start.at[i]);
  wheel.median_length = lengths.empty() ? 1 : stats::median(lengths);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Token& token = tokens[members[m].token];
    wheel.rank_of.emplace(token.hash, static_cast<std::uint32_t>(m));
    std::vector<std::uint32_t> offsets;
    std::size_t k = 0;
    for (const std::uint32_t at : token.at) {
      while (k + 1 < start.at.size() && start.at[k + 1] <= at) ++k;
      if (start.at[k] <= at) offsets.push_back(at - start.at[k]);
    }
    wheel.offset.push_back(
        offsets.empty() ? 0 : static_cast<std::uint32_t>(std::llround(stats::median(std::move(offsets)))));
  }
  return wheel;
}

std::vector<std::uint32_t> walk(const std::vector<Operation>& list, const Wheel& wheel) {
  std::vector<std::uint32_t> cuts;
  const auto places = static_cast<double>(wheel.offset.size());
  double last = -1;
  bool seen_start = false;
  for (std::size_t i = 0; i < list.size(); ++i)
    tokens_of(list, i, [&](std::uint64_t hash, TokenKind, Role) {
      const auto found = wheel.rank_of.find(hash);
      if (found == wheel.rank_of.end()) return;
      const auto place = static_cast<double>(found->second);
      const bool start = found->second == 0;
      const double since = cuts.empty() ? 0 : static_cast<double>(i - cuts.back());
      const auto at = static_cast<std::uint32_t>(i);
      if (cuts.empty()) {
        if (start) cuts.push_back(begin_before(list, wheel, at, 0)), last = 0, seen_start = true;
        return;
      }
      if (start) {
        // The start token of a step whose begin was already seen by a later token: only move the cut.
        if (!seen_start && last < places * 0.25 + 1 && since < wheel.median_length * 0.25 + 1 && last > 0) {
          seen_start = true;
          return;
        }
        const std::uint32_t cut = begin_before(list, wheel, at, cuts.back() + 1);
        if (cut <= cuts.back()) return;
        cuts.push_back(cut);
        last = 0;
        seen_start = true;
        return;
      }
      const bool wraps =
          last - place > places * 0.5 || (places < 4 && place <= last && since > wheel.median_length * 0.6);
      if (wraps) {
        // The first token was lost: begin where it would have been.
        const std::uint32_t back = wheel.offset[found->second];
        const std::uint32_t first = back > 0 && back <= 8 && at + 1 - back > cuts.back() ? at + 1 - back : at;
        const std::uint32_t cut = begin_before(list, wheel, first, cuts.back() + 1);
        if (cut > cuts.back()) cuts.push_back(cut);
        seen_start = false;
        last = place;
        return;
      }
      if (place > last && place - last < places * 0.9) last = place;
    });
  drop_waits(list, cuts);
  return cuts;
}

}  // namespace culprit::cycles
