// Cycles from nothing but the sequence of GPU operations.
//
// Every operation gives tokens: its name, its name with its grid, and the pair with the operation before. A token that
// occurs once per step alternates with every other such token. So tokens are put into classes that alternate with each
// other; a step, a layer and "every fourth step" are three classes with different counts. The step is the class that
// holds what is not repeated inside a step: input copies, embedding, loss, sampling, optimizer, copies to the host.
// Tokens of the class have a fixed cyclic order, and one walk over all operations cuts at every wrap of that order, so
// that lost events and parts of varying length (other kernels, prefill between decodes) do not move a cut.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "cycles/cutting.h"
#include "cycles/operations.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMinRepetitions = 3;
constexpr std::size_t kFirstLook = std::size_t{1} << 19;  // operations looked at to find the period
constexpr std::size_t kLeadersPerCount = 6;
constexpr std::size_t kMaxLeaders = 400;
constexpr std::size_t kMaxMembers = 64;
constexpr double kAlternates = 0.88;

enum class TokenKind : std::uint8_t { name, shape, pair };

struct Token {
  std::uint64_t hash = 0;
  TokenKind kind = TokenKind::name;
  Role role = Role::none;
  std::vector<std::uint32_t> at;  // operations, ascending
};

struct Member {
  std::size_t token = 0;
  double alternation = 0;
  double place = 0;  // median position between two occurrences of the leader, 0..1
};

struct TokenClass {
  std::size_t leader = 0;
  std::size_t count = 0;
  std::vector<Member> members;  // the leader too
  double roles = 0;             // weight of the kinds of step-like operations
  unsigned names = 0;           // members that are not pairs
  double alternation = 0;
  double extent = 0;  // share of the operations it spans
};

double weight_of(Role role) {
  switch (role) {
    case Role::optimizer:
    case Role::sampling:
      return 3;
    case Role::copy_in:
    case Role::embedding:
    case Role::loss:
    case Role::copy_out:
    case Role::sync:
      return 2;
    case Role::none:
    case Role::count_:
      break;
  }
  return 0;
}

std::uint64_t pair_hash(std::uint64_t a, std::uint64_t b) {
  return (a * 0xff51afd7ed558ccdULL ^ b) * 0xc4ceb9fe1a85ec53ULL;
}

/// The tokens of operation i: what runs, what runs with its grid, and which follows which. A token that repeats back to
/// back counts once, except for graph launches, where each may be a step.
template <class Use>
void tokens_of(const std::vector<Operation>& list, std::size_t i, Use&& use) {
  const Operation& op = list[i];
  const bool first = i == 0;
  if (op.graph || first || list[i - 1].name != op.name) use(op.name, TokenKind::name, op.role);
  if (op.shape != op.name && (op.graph || first || list[i - 1].shape != op.shape))
    use(op.shape, TokenKind::shape, Role::none);
  if (!first && list[i - 1].name != op.name && op.role != Role::sync)
    use(pair_hash(list[i - 1].name, op.name), TokenKind::pair, Role::none);
}

std::vector<Token> count_tokens(const std::vector<Operation>& list, std::size_t n) {
  struct Occurrence {
    std::uint64_t hash;
    std::uint32_t at;
    TokenKind kind;
    Role role;
  };
  std::vector<Occurrence> all;
  all.reserve(n * 3);
  for (std::size_t i = 0; i < n; ++i)
    tokens_of(list, i, [&](std::uint64_t hash, TokenKind kind, Role role) {
      all.push_back({hash, static_cast<std::uint32_t>(i), kind, role});
    });
  std::ranges::sort(
      all, [](const Occurrence& a, const Occurrence& b) { return a.hash != b.hash ? a.hash < b.hash : a.at < b.at; });
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].hash == all[i].hash) ++end;
    if (end - i >= kMinRepetitions) {
      Token token{all[i].hash, all[i].kind, all[i].role, {}};
      token.at.reserve(end - i);
      for (std::size_t k = i; k < end; ++k) token.at.push_back(all[k].at);
      tokens.push_back(std::move(token));
    }
    i = end;
  }
  // Order independent of hashes: by count, then by first occurrence.
  std::ranges::stable_sort(tokens, [](const Token& a, const Token& b) {
    if (a.at.size() != b.at.size()) return a.at.size() < b.at.size();
    if (a.at.front() != b.at.front()) return a.at.front() < b.at.front();
    return a.kind < b.kind;
  });
  return tokens;
}

/// Share of the leader's intervals that hold the token exactly once, and where in them.
Member alternate(const Token& leader, const Token& other, std::size_t token) {
  std::size_t once = 0;
  std::vector<double> places;
  std::size_t k = 0;
  const auto& a = leader.at;
  const auto& b = other.at;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    while (k < b.size() && b[k] < a[i]) ++k;
    std::size_t inside = 0;
    const std::size_t first = k;
    while (k < b.size() && b[k] < a[i + 1]) ++k, ++inside;
    if (inside != 1) continue;
    ++once;
    places.push_back(static_cast<double>(b[first] - a[i]) / static_cast<double>(a[i + 1] - a[i]));
  }
  Member member{token, static_cast<double>(once) / static_cast<double>(a.size() - 1), 0};
  if (!places.empty()) {
    std::ranges::nth_element(places, places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2));
    member.place = places[places.size() / 2];
  }
  return member;
}

TokenClass gather(const std::vector<Token>& tokens, std::size_t leader, std::vector<char>& taken,
                  std::size_t operations) {
  TokenClass c;
  c.leader = leader;
  c.count = tokens[leader].at.size();
  const auto slack = std::max<std::size_t>(1, c.count * 12 / 100);
  std::size_t from = leader;
  while (from > 0 && tokens[from - 1].at.size() + slack >= c.count) --from;
  double sum = 0;
  std::array<bool, static_cast<std::size_t>(Role::count_)> seen{};
  for (std::size_t t = from; t < tokens.size() && tokens[t].at.size() <= c.count + slack; ++t) {
    const Member m = t == leader ? Member{t, 1, 0} : alternate(tokens[leader], tokens[t], t);
    if (m.alternation < kAlternates) continue;
    c.members.push_back(m);
    taken[t] = 1;
    sum += m.alternation;
    if (tokens[t].kind != TokenKind::pair) ++c.names;
    const auto role = static_cast<std::size_t>(tokens[t].role);
    if (!seen[role]) c.roles += weight_of(tokens[t].role);
    seen[role] = true;
  }
  c.alternation = sum / static_cast<double>(c.members.size());
  const auto& at = tokens[leader].at;
  c.extent = static_cast<double>(at.back() - at.front()) * static_cast<double>(c.count) /
             static_cast<double>(c.count - 1) / static_cast<double>(operations);
  return c;
}

std::vector<TokenClass> find_classes(const std::vector<Token>& tokens, std::size_t operations) {
  std::vector<char> taken(tokens.size(), 0);
  std::vector<TokenClass> classes;
  // Leaders: step-like operations first, so that a class is built around the steadiest of them; then any token.
  std::vector<std::size_t> order(tokens.size());
  for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const double wa = weight_of(tokens[a].role);
    const double wb = weight_of(tokens[b].role);
    return wa != wb ? wa > wb : tokens[a].kind < tokens[b].kind;
  });
  std::map<std::size_t, std::size_t> leaders;
  for (const std::size_t t : order) {
    if (taken[t] != 0) continue;
    const auto& at = tokens[t].at;
    if ((static_cast<std::size_t>(at.back()) - at.front()) * 2 < operations) continue;
    if (++leaders[at.size()] > kLeadersPerCount || classes.size() >= kMaxLeaders) continue;
    classes.push_back(gather(tokens, t, taken, operations));
  }
  return classes;
}

/// The class that is the step; nullptr when nothing is. See the head of this file.
const TokenClass* choose(const std::vector<TokenClass>& classes) {
  const TokenClass* best = nullptr;
  for (const TokenClass& c : classes)
    if (c.roles >= 4 && (best == nullptr || c.roles > best->roles || (c.roles == best->roles && c.count > best->count)))
      best = &c;
  if (best != nullptr) return best;
  // Without step-like operations: the longest period that more than one thing repeats with.
  for (const TokenClass& c : classes)
    if (c.names >= 2 && c.extent > 0.6 && (best == nullptr || c.count < best->count)) best = &c;
  if (best != nullptr) return best;
  for (const TokenClass& c : classes)
    if (c.extent > 0.6 && (best == nullptr || c.count < best->count)) best = &c;
  return best;
}

template <class T>
T median(std::vector<T> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

struct Wheel {
  std::unordered_map<std::uint64_t, std::uint32_t> rank_of;  // token hash -> place in the order
  std::vector<std::uint32_t> offset;                         // median operations since the first token
  double median_length = 0;                                  // operations per step
  bool clear_begin = false;                                  // what precedes ends a step, or what follows begins one
  double gap_ratio = 1;                                      // gap before the begin over the next largest one
};

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

  // The begin: the member before which the weighted median gap is largest.
  std::size_t first = 0;
  double best = -1;
  double second = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Token& token = tokens[members[m].token];
    if (list[token.at.front()].role == Role::sync) continue;
    std::vector<Ns> gaps;
    std::array<std::size_t, static_cast<std::size_t>(Role::count_)> before{};
    for (const std::uint32_t at : token.at)
      if (at > 0) {
        gaps.push_back(list[at].at - list[at - 1].at);
        ++before[static_cast<std::size_t>(list[at - 1].role)];
      }
    if (gaps.empty()) continue;
    const auto role_before = static_cast<Role>(std::ranges::max_element(before) - before.begin());
    const double score =
        (static_cast<double>(median(gaps)) + 1000) * boundary_weight(role_before, list[token.at.back()].role);
    if (score > best * 1.0001) {
      second = best;
      best = score;
      first = m;
    } else if (score > second) {
      second = score;
    }
  }
  std::ranges::rotate(members, members.begin() + static_cast<std::ptrdiff_t>(first));

  Wheel wheel;
  wheel.gap_ratio = second > 0 ? best / second : 10;
  const Token& start = tokens[members.front().token];
  {
    const std::uint32_t at = start.at.back();
    wheel.clear_begin = begins_step(list[at].role) || (at > 0 && ends_step(list[at - 1].role));
  }
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i + 1 < start.at.size(); ++i) lengths.push_back(start.at[i + 1] - start.at[i]);
  wheel.median_length = lengths.empty() ? 1 : static_cast<double>(median(lengths));
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Token& token = tokens[members[m].token];
    wheel.rank_of.emplace(token.hash, static_cast<std::uint32_t>(m));
    std::vector<std::uint32_t> offsets;
    std::size_t k = 0;
    for (const std::uint32_t at : token.at) {
      while (k + 1 < start.at.size() && start.at[k + 1] <= at) ++k;
      if (start.at[k] <= at) offsets.push_back(at - start.at[k]);
    }
    wheel.offset.push_back(offsets.empty() ? 0 : median(offsets));
  }
  return wheel;
}

/// Operations at which a cycle begins.
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
        if (start) cuts.push_back(at), last = 0, seen_start = true;
        return;
      }
      if (start) {
        // The start token of a step whose begin was already seen by a later token: only move the cut.
        if (!seen_start && last < places * 0.25 + 1 && since < wheel.median_length * 0.25 + 1 && last > 0) {
          seen_start = true;
          return;
        }
        if (at == cuts.back()) return;
        cuts.push_back(at);
        last = 0;
        seen_start = true;
        return;
      }
      const bool wraps =
          last - place > places * 0.5 || (places < 4 && place <= last && since > wheel.median_length * 0.6);
      if (wraps) {
        const std::uint32_t back = wheel.offset[found->second];
        const std::uint32_t cut = back > 0 && back <= 8 && at + 1 - back > cuts.back() ? at + 1 - back : at;
        if (cut > cuts.back()) cuts.push_back(cut);
        seen_start = false;
        last = place;
        return;
      }
      if (place > last && place - last < places * 0.9) last = place;
    });
  return cuts;
}

/// Robust spread of the periods: median distance from the median over the median.
double irregularity(const std::vector<Operation>& list, const std::vector<std::uint32_t>& cuts) {
  if (cuts.size() < 3) return 1;
  std::vector<Ns> periods;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) periods.push_back(list[cuts[i + 1]].at - list[cuts[i]].at);
  const Ns middle = median(periods);
  if (middle <= 0) return 1;
  std::vector<Ns> away;
  for (const Ns p : periods) away.push_back(std::abs(p - middle));
  return static_cast<double>(median(away)) / static_cast<double>(middle);
}

struct Choice {
  std::vector<Token> tokens;
  TokenClass step;
};

std::optional<Choice> find_step(const std::vector<Operation>& list) {
  for (std::size_t n = std::min(list.size(), kFirstLook);; n = std::min(list.size(), n * 4)) {
    Choice choice;
    choice.tokens = count_tokens(list, n);
    const std::vector<TokenClass> classes = find_classes(choice.tokens, n);
    const TokenClass* step = choose(classes);
    if (step != nullptr && (step->roles >= 4 || n == list.size())) {
      choice.step = *step;
      return choice;
    }
    if (n == list.size()) return std::nullopt;
  }
}

}  // namespace

std::optional<Cutting> cut_by_sequence(const Trace& trace) {
  const std::vector<Operations> ranks = list_operations(trace);
  // One rank decides what a step is, all are cut by it: with the same operations, each on its own clock.
  std::size_t decides = 0;
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].list.size() > ranks[decides].list.size()) decides = r;
  if (ranks.empty() || ranks[decides].list.size() < kMinRepetitions) return std::nullopt;
  const std::vector<Operation>& list = ranks[decides].list;
  const std::optional<Choice> choice = find_step(list);
  if (!choice) return std::nullopt;
  const TokenClass& step = choice->step;
  const Wheel wheel = build_wheel(list, choice->tokens, step);

  Cutting cutting;
  cutting.method = model::CycleMethod::launch_sequence;
  cutting.device_time = ranks[decides].device_time;
  double spread = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].device_time != cutting.device_time) {
      cutting.notes.push_back(
          fmt::format("rank {} was left out: its GPU work {} host calls", r,
                      ranks[r].device_time ? "has no links to" : "is, unlike that of others, linked to"));
      continue;
    }
    const std::vector<std::uint32_t> cuts = walk(ranks[r].list, wheel);
    if (cuts.size() < kMinRepetitions) continue;
    Lane lane;
    lane.rank = static_cast<std::uint16_t>(r);
    for (const std::uint32_t cut : cuts) {
      const Operation& op = ranks[r].list[cut];
      // Graph nodes and a kernel may share one launcher; a cut cannot lie inside it.
      if (!lane.cuts.empty() && op.at <= lane.cuts.back().begin) continue;
      lane.cuts.push_back({op.at, op.at, trace.slices[op.slice].name, -1});
      if (lane.track == kNone && !cutting.device_time && op.role != Role::sync) {
        const Slice& s = trace.slices[op.slice];
        if (s.gpu != kNone && trace.gpu[s.gpu].launcher != kNone)
          lane.track = trace.slices[trace.gpu[s.gpu].launcher].track;
      }
    }
    spread = std::max(spread, irregularity(ranks[r].list, cuts));
    if (cuts.front() > wheel.median_length * 0.2)
      cutting.notes.push_back(
          fmt::format("rank {}: {} GPU operations before the first whole cycle belong to none", r, cuts.front()));
    if (ranks[r].unlinked > 0)
      cutting.notes.push_back(
          fmt::format("rank {}: {} GPU operations without a known launch were not looked at", r, ranks[r].unlinked));
    cutting.lanes.push_back(std::move(lane));
  }
  if (cutting.lanes.empty()) return std::nullopt;

  const Slice& first = trace.slices[cutting.lanes.front().cuts.empty() ? 0 : list[walk(list, wheel).front()].slice];
  cutting.anchor = fmt::format("launches from \"{}\"", trace.name(first));
  double period = step.roles >= 8 ? 0.97 : step.roles >= 6 ? 0.93 : step.roles >= 4 ? 0.8 : step.roles > 0 ? 0.4 : 0.25;
  if (step.count < 5) period -= 0.08;
  if (spread > 0.5) period *= 0.9;
  period *= std::min(1.0, 0.5 + step.alternation * 0.5);
  cutting.period_confidence = std::clamp(period, 0.05, 0.98);
  double phase = wheel.clear_begin ? 0.9 : wheel.gap_ratio > 2 ? 0.5 : 0.3;
  if (wheel.gap_ratio < 1.2) phase -= 0.15;
  cutting.phase_confidence = std::clamp(std::min(phase, cutting.period_confidence), 0.05, 0.95);
  cutting.reason = fmt::format(
      "{} things repeat together {} times, about {:.0f} GPU operations apart{}; a cycle begins where the launch gap is "
      "largest{}",
      step.members.size(), step.count, wheel.median_length,
      step.roles >= 4 ? ", among them what a step does only once (input, loss, sampling, optimizer, copies to the host)"
                      : ", but nothing among them tells a step from a part of one, such as a layer",
      wheel.clear_begin ? ", where input begins or output ends" : "; a sequence alone has no natural beginning");
  return cutting;
}

}  // namespace culprit::cycles
