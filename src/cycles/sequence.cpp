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
#include <limits>
#include <map>
#include <unordered_map>

#include "cycles/cutting.h"
#include "cycles/operations.h"
#include "cycles/tokens.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kFirstLook = std::size_t{1} << 19;  // operations looked at to find the period
constexpr std::size_t kLeadersPerCount = 6;
constexpr std::size_t kMaxLeaders = 400;
constexpr std::size_t kMaxMembers = 64;
constexpr double kAlternates = 0.88;
constexpr double kMayBeLayer = 0.45;
constexpr double kWholeSteps = 50;  // a recording fits whole steps by chance in about one of so many cases

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
  double extent = 0;      // share of the operations it spans
  bool ends = false;      // something that ends a step is among them
  bool firm = false;      // sampling, loss or an optimizer is: a layer may copy and look up, but does none of these
  bool embeds = false;    // an embedding or a lookup that looks like one is
  bool backward = false;  // something of a backward pass is
  bool regular = false;   // most occurrences of the leader are equally far apart
  bool nested = false;    // a finer class repeats inside it
  bool enclosed = false;  // a longer regular repetition holds it a fixed number of times
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

template <class T>
T median(std::vector<T> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
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
    // A copy to the host and the wait for it are one thing: some layers do both.
    const Role kind = tokens[t].role == Role::sync ? Role::copy_out : tokens[t].role;
    if (!seen[static_cast<std::size_t>(kind)]) c.roles += weight_of(kind);
    seen[static_cast<std::size_t>(kind)] = true;
    c.ends = c.ends || ends_step(kind) || kind == Role::loss;
    c.firm = c.firm || kind == Role::sampling || kind == Role::loss || kind == Role::optimizer;
    c.embeds = c.embeds || kind == Role::embedding;
    c.backward = c.backward || tokens[t].backward;
  }
  c.alternation = sum / static_cast<double>(c.members.size());
  const auto& at = tokens[leader].at;
  c.extent = static_cast<double>(at.back() - at.front()) * static_cast<double>(c.count) /
             static_cast<double>(c.count - 1) / static_cast<double>(operations);
  std::vector<std::uint32_t> apart;
  for (std::size_t i = 0; i + 1 < at.size(); ++i) apart.push_back(at[i + 1] - at[i]);
  const double usual = static_cast<double>(median(apart));
  const auto near = std::ranges::count_if(
      apart, [&](std::uint32_t a) { return std::abs(static_cast<double>(a) - usual) <= usual * 0.1 + 1; });
  c.regular = near * 3 >= static_cast<std::ptrdiff_t>(apart.size()) * 2;
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
  // A period that holds a backward pass and fills the recording is a training step whatever its operations are called.
  for (const TokenClass& c : classes)
    if (c.backward && c.regular && c.names >= 3 && c.extent > 0.9 && c.extent < 1.1 &&
        (best == nullptr || c.count < best->count))
      best = &c;
  if (best != nullptr) return best;
  // Without step-like operations: the longest period that more than one thing repeats with.
  for (const TokenClass& c : classes)
    if (c.names >= 2 && c.regular && c.extent > 0.6 && c.extent < 1.2 && (best == nullptr || c.count < best->count))
      best = &c;
  if (best != nullptr) return best;
  for (const TokenClass& c : classes)
    if (c.regular && c.extent > 0.6 && c.extent < 1.2 && (best == nullptr || c.count < best->count)) best = &c;
  return best;
}

struct Wheel {
  std::unordered_map<std::uint64_t, std::uint32_t> rank_of;  // token hash -> place in the order
  std::vector<std::uint32_t> offset;                         // median operations since the first token
  double median_length = 0;                                  // operations per step
  bool fits_recording = false;                               // whole steps from the first operation to the last
  bool clear_begin = false;                                  // what precedes ends a step, or what follows begins one
  std::uint32_t back = 0;                                    // operations from the begin of a step to its first token
  std::uint64_t first_name = 0;                              // what runs first
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
    weighted.push_back((static_cast<double>(list[i].at - list[i - 1].at) + 1000) *
                       boundary_weight(list[i - 1].role, list[i].role));
  }
  if (weighted.size() * 3 < (at.size() - 1) * 2) return std::nullopt;
  return std::pair(Begin{m, back, list[origin].name, 10, clear_begin(list, at.back() - back), true},
                   median(std::move(weighted)));
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
            (static_cast<double>(list[i].at - list[i - 1].at) + 1000) * boundary_weight(list[i - 1].role, list[i].role);
        if (weighted > pause.weighted) pause = {to - i, i, weighted};
      }
      if (pause.weighted >= 0) pauses.push_back(pause);
    }
    pauses = agreeing(std::move(pauses));
    if (pauses.empty()) continue;
    std::vector<double> weighted;
    for (const Pause& p : pauses) weighted.push_back(p.weighted);
    const double score = median(weighted);
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
      whole && whole->second * kWholeSteps > best) {
    second = best;
    best = whole->second * kWholeSteps;
    begin = whole->first;
  }
  begin.gap_ratio = second > 0 ? best / second : 10;
  return begin;
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
    const Ns mine = i == 0 ? std::numeric_limits<Ns>::max() : list[i].at - list[i - 1].at;
    if (mine > gap) {
      gap = mine;
      best = i;
    }
  }
  return best;
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

/// Whether the leader of `inner` occurs equally often, and at least twice, in most intervals of the leader of `outer`.
bool encloses(const Token& outer, const Token& inner) {
  std::map<std::size_t, std::size_t> times;
  std::size_t k = 0;
  for (std::size_t i = 0; i + 1 < outer.at.size(); ++i) {
    while (k < inner.at.size() && inner.at[k] < outer.at[i]) ++k;
    const std::size_t first = k;
    while (k < inner.at.size() && inner.at[k] < outer.at[i + 1]) ++k;
    ++times[k - first];
  }
  return std::ranges::any_of(times,
                             [&](const auto& t) { return t.first >= 2 && t.second * 5 >= (outer.at.size() - 1) * 4; });
}

/// Keeps `step` in `choice` and notes whether a finer class repeats inside it (then it is no innermost repetition), and
/// whether it repeats inside a longer one.
void mark_nested(const std::vector<TokenClass>& classes, const TokenClass& step, Choice& choice) {
  choice.step = step;
  for (const TokenClass& c : classes) {
    if (c.names < 2 || !c.regular || c.extent <= 0.6) continue;
    if (c.count >= step.count * 3) choice.step.nested = true;
    if (c.count * 2 <= step.count && encloses(choice.tokens[c.leader], choice.tokens[step.leader]))
      choice.step.enclosed = true;
  }
}

std::optional<Choice> find_step(const std::vector<Operation>& list) {
  for (std::size_t n = std::min(list.size(), kFirstLook);; n = std::min(list.size(), n * 4)) {
    Choice choice;
    choice.tokens = count_tokens(list, n);
    const std::vector<TokenClass> classes = find_classes(choice.tokens, n);
    const TokenClass* step = choose(classes);
    if (step != nullptr) mark_nested(classes, *step, choice);
    if (step != nullptr && (step->roles >= 4 || n == list.size())) {
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
    // The last step reaches to the last launch, unless much more follows than a step.
    if (lane.cuts.size() >= 2) {
      const Operation& last = ranks[r].list.back();
      const Ns usual = (lane.cuts.back().begin - lane.cuts.front().begin) / static_cast<Ns>(lane.cuts.size() - 1);
      if (last.host_end - lane.cuts.back().begin < usual * 2) lane.cuts.back().end = last.host_end + 1;
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
  const bool once = step.roles >= 4 && step.ends;
  // Layers may copy to and from the host and look rows up; only what no layer does makes a step of it.
  const bool known = once && (step.firm || (step.embeds && !step.enclosed));
  double period = once && !known                                                  ? kMayBeLayer
                  : known && step.roles >= 8                                      ? 0.97
                  : known && step.roles >= 6                                      ? 0.93
                  : known || (step.backward && step.regular && step.extent > 0.9) ? 0.85
                  : step.roles >= 4 || step.nested                                ? 0.5
                  : step.roles > 0                                                ? 0.35
                                                                                  : 0.25;
  if (step.count < 5) period -= 0.08;
  if (spread > 0.5) period *= 0.9;
  period *= std::min(1.0, 0.5 + step.alternation * 0.5);
  cutting.period_confidence = std::clamp(period, 0.05, 0.98);
  double phase = wheel.clear_begin ? 0.9 : wheel.fits_recording ? 0.8 : wheel.gap_ratio > 2 ? 0.5 : 0.3;
  if (wheel.gap_ratio < 1.2 && !wheel.fits_recording) phase -= 0.15;
  cutting.phase_confidence = std::clamp(std::min(phase, cutting.period_confidence), 0.05, 0.95);
  cutting.reason = fmt::format(
      "{} things repeat together {} times, about {:.0f} GPU operations apart{}{}; a cycle begins where the launch gap "
      "is "
      "largest{}",
      step.members.size(), step.count, wheel.median_length,
      known ? ", among them what a step does only once (input, loss, sampling, optimizer, copies to the host)"
      : step.backward && step.regular && step.extent > 0.9 ? ", a backward pass among them, and fill the recording"
      : once ? ", copies to and from the host among them, but no sampling, loss or optimizer: layers may copy, too"
             : ", but nothing among them tells a step from a part of one, such as a layer",
      step.enclosed && !step.firm ? "; a longer repetition holds them a fixed number of times" : "",
      wheel.clear_begin ? ", where input begins or output ends" : "; a sequence alone has no natural beginning");
  return cutting;
}

}  // namespace culprit::cycles
