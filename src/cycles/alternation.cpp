#include "cycles/alternation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/saturating.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMostCycles = 4096;  // looked at
constexpr std::size_t kMostKinds = 64;
constexpr std::size_t kLongest = 16;      // period
constexpr double kSameKind = 0.8;         // share of the operations that two cycles of one kind have in common
constexpr double kHolds = 0.75;           // share of the cycles that a period must hold for
constexpr double kNotByChance = 2;        // standard deviations above what kinds in no order would give
constexpr double kBetter = 0.25;          // by which a period beats every shorter one
constexpr double kSmall = 0.1;            // share of operations and of time
constexpr double kNotMuchShorter = 0.25;  // a pass without the optimizer against one with it

/// What runs in a cycle, by name.
struct Content {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> names;  ///< and how often, ascending
  std::uint32_t size = 0;
  Ns work = 0;
  bool kernels = false;
  bool samples = false;
  bool serves = false;  ///< attention of prefill or decode
  bool optimizes = false;
  bool trains = false;
};

/// With or without the optimizer's operations.
Content content_of(const std::vector<Operation>& list, std::uint32_t from, std::uint32_t to, bool updates) {
  Content c;
  std::vector<std::uint64_t> names;
  for (std::uint32_t i = from; i < to; ++i) {
    const Operation& op = list[i];
    const bool update = op.role == Role::optimizer || (op.hint & kHintUpdate) != 0;
    if (op.role == Role::sync || (update && !updates)) continue;
    names.push_back(op.name);
    c.work = add_saturating(c.work, op.work);
    c.kernels = c.kernels || op.computes;
    c.samples = c.samples || op.role == Role::sampling || op.role == Role::draw;
    c.optimizes = c.optimizes || update;
    c.serves = c.serves || (op.hint & (kHintPrefill | kHintDecode)) != 0;
    c.trains = c.trains || op.role == Role::loss || (op.hint & kHintTrain) != 0;
  }
  c.size = static_cast<std::uint32_t>(names.size());
  std::ranges::sort(names);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i > 0 && names[i] == names[i - 1])
      ++c.names.back().second;
    else
      c.names.emplace_back(names[i], 1U);
  return c;
}

/// Operations that both have.
double common(const Content& a, const Content& b) {
  double sum = 0;
  for (std::size_t i = 0, k = 0; i < a.names.size() && k < b.names.size();) {
    if (a.names[i].first == b.names[k].first) {
      sum += std::min(a.names[i].second, b.names[k].second);
      ++i;
      ++k;
    } else {
      a.names[i].first < b.names[k].first ? ++i : ++k;
    }
  }
  return sum;
}

bool same_kind(const Content& a, const Content& b) {
  if (a.optimizes != b.optimizes || std::min(a.size, b.size) < std::max(a.size, b.size) * kSameKind) return false;
  const double shared = common(a, b);
  return shared >= (a.size + b.size - shared) * kSameKind;
}

struct Kind {
  Content content;  ///< of its first cycle
  std::vector<double> sizes;
  std::vector<double> works;
};

/// The kinds of the cycles, numbered by first occurrence; what fits none of the first kMostKinds is a kind of its own.
std::vector<std::size_t> kinds_of(std::vector<Content>&& cycles, std::vector<Kind>& kinds) {
  std::vector<std::size_t> of;
  std::size_t odd = kMostKinds;
  for (Content& cycle : cycles) {
    std::size_t k = 0;
    while (k < kinds.size() && !same_kind(kinds[k].content, cycle)) ++k;
    if (k == kMostKinds) {
      of.push_back(odd++);
      continue;
    }
    if (k == kinds.size()) kinds.push_back({cycle, {}, {}});
    kinds[k].sizes.push_back(cycle.size);
    kinds[k].works.push_back(static_cast<double>(cycle.work));
    of.push_back(k);
  }
  return of;
}

/// The shortest period of `kinds` that deserves the name; 1 when there is none.
std::size_t period_of(const std::vector<std::size_t>& kinds) {
  const std::size_t n = kinds.size();
  std::map<std::size_t, double> shares;
  for (const std::size_t k : kinds) shares[k] += 1.0 / static_cast<double>(n);
  double by_chance = 0;
  for (const auto& [kind, share] : shares) by_chance += share * share;
  double best_shorter = 0;
  for (std::size_t p = 1; p <= std::min(kLongest, n / 3); ++p) {
    const auto compared = static_cast<double>(n - p);
    double equal = 0;
    for (std::size_t i = 0; i + p < n; ++i) equal += kinds[i] == kinds[i + p] ? 1 : 0;
    const double share = equal / compared;
    const double deviation = std::sqrt(by_chance * (1 - by_chance) / compared);
    if (p > 1 && share >= kHolds && share >= best_shorter + kBetter && share - by_chance >= kNotByChance * deviation)
      return p;
    best_shorter = std::max(best_shorter, share);
  }
  return 1;
}

/// The most frequent stretch of `period` cycles.
std::vector<std::size_t> usual_order(const std::vector<std::size_t>& kinds, std::size_t period) {
  std::map<std::vector<std::size_t>, std::pair<std::size_t, std::size_t>> seen;  // how often, first where
  for (std::size_t i = 0; i + period <= kinds.size(); ++i) {
    const auto from = kinds.begin() + static_cast<std::ptrdiff_t>(i);
    ++seen.try_emplace(std::vector<std::size_t>(from, from + static_cast<std::ptrdiff_t>(period)), 0, i)
          .first->second.first;
  }
  const auto* best = &*seen.begin();
  for (const auto& entry : seen)
    if (entry.second.first > best->second.first ||
        (entry.second.first == best->second.first && entry.second.second < best->second.second))
      best = &entry;
  return best->first;
}

struct Order {
  std::vector<const Content*> distinct;
  const Content* largest = nullptr;
  double others_size = 0;  // shares of the whole period
  double others_work = 0;
  bool repeats = false;  // a kind comes more than once in a period
};

bool all_of(const Order& order, bool Content::*what) {
  return std::ranges::all_of(order.distinct, [&](const Content* c) { return c->*what; });
}
bool any_of(const Order& order, bool Content::*what) {
  return std::ranges::any_of(order.distinct, [&](const Content* c) { return c->*what; });
}

/// Whether the others are the largest one without some of it.
bool alike(const Order& order) {
  return std::ranges::all_of(order.distinct, [&](const Content* c) {
    return c->size >= order.largest->size * kNotMuchShorter && common(*c, *order.largest) >= c->size * kSameKind;
  });
}

bool are_parts(const Order& order) {
  const bool others_only_copy =
      std::ranges::all_of(order.distinct, [&](const Content* c) { return c == order.largest || !c->kernels; });
  if (others_only_copy) return true;
  if (any_of(order, &Content::samples)) return !all_of(order, &Content::samples);
  if (all_of(order, &Content::serves)) return false;
  if (order.others_size <= kSmall && order.others_work <= kSmall) return true;
  if (alike(order)) return false;
  // Kinds that come once each are no passes of one kind; of passes that repeat, only those of a training step belong
  // together.
  return !order.repeats || (any_of(order, &Content::trains) && !all_of(order, &Content::trains));
}

Alternation alternation_of(const std::vector<Operation>& list, const std::vector<std::uint32_t>& cuts, bool updates) {
  Alternation out;
  if (cuts.size() < 7) return out;  // three periods of two
  std::vector<Content> cycles;
  for (std::size_t i = 0; i + 1 < cuts.size() && i < kMostCycles; ++i)
    cycles.push_back(content_of(list, cuts[i], cuts[i + 1], updates));
  std::vector<Kind> kinds;
  const std::vector<std::size_t> of = kinds_of(std::move(cycles), kinds);
  const std::size_t period = period_of(of);
  if (period == 1) return out;
  const std::vector<std::size_t> usual = usual_order(of, period);
  if (std::ranges::any_of(usual, [&](std::size_t k) { return k >= kinds.size(); })) return out;

  Order order;
  double size = 0;
  double work = 0;
  double most = -1;
  std::size_t largest = 0;
  for (const std::size_t k : usual) {
    const double mine = stats::median(kinds[k].works);
    out.sizes.push_back(static_cast<std::uint32_t>(std::llround(stats::median(kinds[k].sizes))));
    size += out.sizes.back();
    work += mine;
    if (mine > most || (mine == most && kinds[k].content.size > kinds[largest].content.size)) {
      most = mine;
      largest = k;
    }
  }
  for (const std::size_t k : std::set<std::size_t>(usual.begin(), usual.end()))
    order.distinct.push_back(&kinds[k].content);
  order.largest = &kinds[largest].content;
  order.repeats = order.distinct.size() < period;
  const auto times = static_cast<double>(std::ranges::count(usual, largest));
  if (size > 0) order.others_size = 1 - times * stats::median(kinds[largest].sizes) / size;
  if (work > 0) order.others_work = 1 - times * most / work;
  out.period = static_cast<std::uint32_t>(period);
  out.parts = are_parts(order);
  if (!out.parts && any_of(order, &Content::optimizes) && !all_of(order, &Content::optimizes))
    out.updates_every = out.period;
  return out;
}

}  // namespace

Alternation find_alternation(const std::vector<Operation>& list, const std::vector<std::uint32_t>& cuts) {
  // Parts of passes are parts whether or not the optimizer runs after each pass.
  Alternation parts = alternation_of(list, cuts, false);
  return parts.parts ? parts : alternation_of(list, cuts, true);
}

}  // namespace culprit::cycles
