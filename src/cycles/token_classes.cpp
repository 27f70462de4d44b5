#include "cycles/token_classes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "cycles/confidence.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kLeadersPerCount = 6;
constexpr std::size_t kMaxLeaders = 400;

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
  if (!places.empty()) member.place = stats::median_in_place(std::span(places));
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
    if (m.alternation < confidence::kAlternates) continue;
    c.members.push_back(m);
    taken[t] = 1;
    sum += m.alternation;
    if (tokens[t].kind != TokenKind::pair) ++c.names;
    // A copy to the host and the wait for it are one thing: some layers do both.
    const Role role = tokens[t].role;
    const Role kind = role == Role::sync ? Role::copy_out : role == Role::draw ? Role::sampling : role;
    if (!seen[static_cast<std::size_t>(kind)]) c.roles += weight_of(kind);
    seen[static_cast<std::size_t>(kind)] = true;
    c.ends = c.ends || ends_step(kind) || kind == Role::loss;
    c.firm = c.firm || kind == Role::sampling || kind == Role::loss || kind == Role::optimizer;
    c.decisive = c.decisive || kind == Role::sampling || kind == Role::optimizer;
    c.draws = c.draws || role == Role::draw;
    c.updates = c.updates || kind == Role::optimizer;
    c.embeds = c.embeds || kind == Role::embedding;
    c.backward = c.backward || tokens[t].backward;
  }
  c.alternation = sum / static_cast<double>(c.members.size());
  const auto& at = tokens[leader].at;
  c.extent = static_cast<double>(at.back() - at.front()) * static_cast<double>(c.count) /
             static_cast<double>(c.count - 1) / static_cast<double>(operations);
  std::vector<std::uint32_t> apart;
  for (std::size_t i = 0; i + 1 < at.size(); ++i) apart.push_back(at[i + 1] - at[i]);
  const double usual = stats::median(apart);
  const auto near = std::ranges::count_if(
      apart, [&](std::uint32_t a) { return std::abs(static_cast<double>(a) - usual) <= usual * 0.1 + 1; });
  c.regular = near * 3 >= static_cast<std::ptrdiff_t>(apart.size()) * 2;
  c.draws = c.draws && c.regular && c.extent > confidence::kFills && c.extent < confidence::kSpansTooMuch;
  return c;
}

/// How often the leader of `inner` occurs in most intervals of the leader of `outer`; 0 when that is less than twice,
/// or another number of times in more than a fifth of them.
std::size_t times_inside(const Token& outer, const Token& inner) {
  std::map<std::size_t, std::size_t> times;
  std::size_t k = 0;
  for (std::size_t i = 0; i + 1 < outer.at.size(); ++i) {
    while (k < inner.at.size() && inner.at[k] < outer.at[i]) ++k;
    const std::size_t first = k;
    while (k < inner.at.size() && inner.at[k] < outer.at[i + 1]) ++k;
    ++times[k - first];
  }
  const auto most = std::ranges::max_element(times, {}, [](const auto& t) { return t.second; });
  return most->first >= 2 && most->second * 5 >= (outer.at.size() - 1) * 4 ? most->first : 0;
}

/// Whether it is a pass forward and backward: layers have a backward pass, too, but neither look rows up nor know a
/// loss. Where events were lost, what does may be in another class that occurs nearly as often.
bool is_pass(const std::vector<TokenClass>& classes, const TokenClass& c) {
  const auto tells = [&](const TokenClass& other) {
    const std::size_t apart = std::max(other.count, c.count) - std::min(other.count, c.count);
    return (other.embeds || (other.firm && !other.updates)) && apart * 6 <= c.count;
  };
  return c.backward && c.regular && c.names >= 2 && !c.updates && c.extent > confidence::kFills &&
         c.extent < confidence::kSpansTooMuch && std::ranges::any_of(classes, tells);
}

/// `step`, or, when it holds the optimizer after several passes forward and backward, the class of those.
const TokenClass* pass_of(const std::vector<TokenClass>& classes, const std::vector<Token>& tokens,
                          const TokenClass& step) {
  if (!step.updates) return &step;
  for (const TokenClass& c : classes)
    if (is_pass(classes, c) && times_inside(tokens[step.leader], tokens[c.leader]) >= 2) return &c;
  return &step;
}

}  // namespace

double weight_of(Role role) {
  switch (role) {
    case Role::optimizer:
    case Role::sampling:
    case Role::draw:
      return confidence::kWeightDecisive;
    case Role::copy_in:
    case Role::embedding:
    case Role::loss:
    case Role::copy_out:
    case Role::sync:
      return confidence::kWeightTelling;
    case Role::none:
    case Role::count_:
      break;
  }
  return 0;
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

const TokenClass* choose(const std::vector<TokenClass>& classes, const std::vector<Token>& tokens) {
  const TokenClass* best = nullptr;
  for (const TokenClass& c : classes)
    if (c.tells_step() &&
        (best == nullptr || c.roles > best->roles || (c.roles == best->roles && c.count > best->count)))
      best = &c;
  if (best != nullptr) return pass_of(classes, tokens, *best);
  // A period that holds a backward pass and fills the recording is a training step whatever its operations are called.
  for (const TokenClass& c : classes)
    if (c.backward && c.regular && c.names >= 2 && c.extent > confidence::kFills &&
        c.extent < confidence::kSpansTooMuch - 0.1 && (best == nullptr || c.count < best->count))
      best = &c;
  if (best != nullptr) return pass_of(classes, tokens, *best);
  // Without step-like operations: the longest period that more than one thing repeats with.
  for (const TokenClass& c : classes)
    if (c.names >= 2 && c.regular && c.extent > confidence::kSpansMost && c.extent < confidence::kSpansTooMuch &&
        (best == nullptr || c.count < best->count))
      best = &c;
  if (best != nullptr) return best;
  for (const TokenClass& c : classes)
    if (c.regular && c.extent > confidence::kSpansMost && c.extent < confidence::kSpansTooMuch &&
        (best == nullptr || c.count < best->count))
      best = &c;
  return best;
}

void mark_nested(const std::vector<TokenClass>& classes, const std::vector<Token>& tokens, TokenClass& step) {
  for (const TokenClass& c : classes) {
    if (c.names < 2 || !c.regular || c.extent <= confidence::kSpansMost) continue;
    if (c.count >= step.count * 3) step.nested = true;
    if (c.count * 2 > step.count) continue;
    const std::size_t times = times_inside(tokens[c.leader], tokens[step.leader]);
    if (times == 0) continue;
    step.enclosed = true;
    if (c.updates && is_pass(classes, step)) step.updates_every = times;
  }
  if (step.updates_every > 0) step.enclosed = false;
}

}  // namespace culprit::cycles
