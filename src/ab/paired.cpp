#include "ab/paired.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "stats/distributions.h"
#include "stats/moments.h"
#include "stats/signed_rank.h"

namespace culprit::ab {

namespace {

constexpr double kLeastError = 1e-6;  // of a start

/// One side's values of one kind of work in one pair.
struct Sum {
  double sum = 0;    // of their logarithms
  double plain = 0;  // of themselves
  std::size_t n = 0;
};
using ByWork = std::map<compare::WorkClass, std::array<Sum, 2>>;

void add_pair(const ByWork& works, std::array<Sum, 2>& alike, Differences& to) {
  double sum = 0;
  double weights = 0;
  std::array<double, 2> plain{};
  for (const auto& [work, sides] : works) {
    const auto& [a, b] = sides;
    if (a.n == 0 || b.n == 0) {
      to.change.other_work[0] += a.n;
      to.change.other_work[1] += b.n;
      continue;
    }
    const auto na = static_cast<double>(a.n);
    const auto nb = static_cast<double>(b.n);
    const double weight = na * nb / (na + nb);
    sum += weight * (b.sum / nb - a.sum / na);
    weights += weight;
    for (std::size_t side = 0; side < 2; ++side) {
      plain[side] += weight * sides[side].plain / static_cast<double>(sides[side].n);
      alike[side].sum += sides[side].sum;
      alike[side].plain += sides[side].plain;
      alike[side].n += sides[side].n;
    }
  }
  if (!(weights > 0)) return;
  to.logs.push_back(sum / weights);
  to.sums.push_back(plain);
}

/// Means of as many neighbours as leave no more than kMostDifferences; the last ones, which are fewer, are left out.
std::vector<double> averaged(std::vector<double> logs) {
  if (logs.size() <= kMostDifferences) return logs;
  const std::size_t together = (logs.size() + kMostDifferences - 1) / kMostDifferences;
  std::vector<double> means;
  for (std::size_t i = 0; i + together <= logs.size(); i += together)
    means.push_back(stats::moments(std::span(logs).subspan(i, together)).mean);
  return means;
}

/// Relative change of the arithmetic means, and its standard error: no number of a single pair.
struct Total {
  double change = 0;
  double error = 0;
};
std::optional<Total> total_of(const Differences& of, double memory) {
  std::vector<double> differences;
  double base = 0;
  for (const auto& [a, b] : of.sums) {
    differences.push_back(b - a);
    base += a;
  }
  if (!(base > 0)) return std::nullopt;
  const auto pairs = static_cast<double>(differences.size());
  base /= pairs;
  const stats::Moments moments = stats::moments(differences);
  return Total{moments.mean / base, moments.std * std::sqrt(memory / pairs) / base};
}

/// Fills `total` and its interval from `sums`.
void fill_own_total(Differences& of) {
  const auto total = total_of(of, of.change.memory);
  if (!total) return;
  of.change.total = total->change;
  if (of.sums.size() < kFewestPairs) return;
  const double half = stats::student_quantile(0.975, static_cast<double>(of.sums.size()) - 1) * total->error;
  of.change.total_low = total->change - half;
  of.change.total_high = total->change + half;
}

/// Whether all runs together took the other way than the typical one: a regression whose mean is surely shorter, an
/// improvement whose mean is surely longer, or longer by `detect` (rare long runs make it unsure), no change where the
/// mean surely moved, and by `detect` or more.
bool is_contradicted(model::Outcome outcome, const model::PairedChange& change, double detect) {
  const bool longer = change.total_low > 0;
  const bool shorter = change.total_high < 0;
  switch (outcome) {
    case model::Outcome::regression:
      return shorter;
    case model::Outcome::improvement:
      return longer || change.total >= detect;
    case model::Outcome::no_change:
      return (longer || shorter) && std::abs(change.total) >= detect;
    default:
      return false;
  }
}

/// Whether all pairs of one start have the same change, but for rounding.
bool is_same(const Differences& of) {
  constexpr double kRounding = 1e-9;
  return of.change.spread < kRounding;
}

/// The largest of 1/2, 1/4, 1/8, ... that is no more than `share`.
double half_below(double share) { return std::exp2(std::floor(std::log2(share))); }

}  // namespace

std::vector<Differences> differences_of(std::span<const Value> values) {
  struct Phased {
    Differences result;
    double total = 0;
    std::map<std::uint32_t, ByWork> pairs;
  };
  std::map<model::Phase, Phased> phases;
  for (const Value& v : values) {
    if (!(v.value > 0) || !std::isfinite(v.value)) continue;
    Phased& phase = phases[v.phase];
    const double log = std::log(v.value);
    Sum& one = phase.pairs[v.pair][v.work][v.side];
    one.sum += log;
    one.plain += v.value;
    ++one.n;
    phase.total += v.value;
  }
  std::vector<std::pair<double, Differences>> found;
  for (auto& [number, phase] : phases) {
    model::PairedChange& change = phase.result.change;
    change.phase = number;
    std::array<Sum, 2> alike;
    for (const auto& [pair, works] : phase.pairs) add_pair(works, alike, phase.result);
    change.pairs = phase.result.logs.size();
    if (change.pairs > 1) change.spread = std::expm1(stats::moments(phase.result.logs).std);
    phase.result.logs = averaged(std::move(phase.result.logs));
    for (std::size_t side = 0; side < 2; ++side) {
      change.values[side] = alike[side].n;
      if (alike[side].n == 0) continue;
      change.mean[side] = std::exp(alike[side].sum / static_cast<double>(alike[side].n));
      change.total_mean[side] = alike[side].plain / static_cast<double>(alike[side].n);
    }
    if (change.pairs > 0) {
      change.change = std::expm1(stats::signed_rank_interval(phase.result.logs, 1).estimate);
      change.memory = stats::memory_of(phase.result.logs);
      fill_own_total(phase.result);
    }
    found.emplace_back(change.pairs > 0 ? phase.total : 0.0, std::move(phase.result));
  }
  std::ranges::stable_sort(found, std::greater(), &std::pair<double, Differences>::first);
  std::vector<Differences> result;
  result.reserve(found.size());
  for (auto& [total, differences] : found) result.push_back(std::move(differences));
  return result;
}

Together together(std::span<const Start> starts, const StartSpread& assumed) {
  const auto variance_of = [](const Start& start) {
    return std::max(start.error * start.error, kLeastError * kLeastError);
  };
  // What they spread beyond their own errors (DerSimonian and Laird).
  double weights = 0;
  double squares = 0;
  double mean = 0;
  for (const Start& start : starts) {
    const double variance = variance_of(start);
    weights += 1 / variance;
    squares += 1 / (variance * variance);
    mean += start.change / variance;
  }
  mean /= weights;
  double apart = 0;
  for (const Start& start : starts) apart += (start.change - mean) * (start.change - mean) / variance_of(start);
  const double scale = weights - squares / weights;
  const double seen = scale > 0 ? std::max(0.0, (apart - static_cast<double>(starts.size() - 1)) / scale) : 0;
  // A start tells of that as far as its error is small against what is assumed, or seen where nothing is.
  const double usual = assumed.spread > 0 ? assumed.spread * assumed.spread : seen;
  double told = 0;
  double most = 0;
  for (const Start& start : starts) {
    const double share = usual / (usual + variance_of(start));
    told += share * share;
    most = std::max(most, share * share);
  }
  told -= most;  // one goes into their mean
  Together result;
  result.freedom = assumed.starts + told;
  result.spread = result.freedom > 0
                      ? std::sqrt((assumed.starts * assumed.spread * assumed.spread + told * seen) / result.freedom)
                      : assumed.spread;
  weights = 0;
  for (const Start& start : starts) {
    const double weight = 1 / (result.spread * result.spread + variance_of(start));
    weights += weight;
    result.change += weight * start.change;
  }
  result.change /= weights;
  result.error = 1 / std::sqrt(weights);
  return result;
}

/// Between the pairs of one start.
double Looks::memory_of(const Differences& of) const {
  constexpr double kUnknownMemory = 3.0;  // that of an autocorrelation of one half
  return of.logs.size() < fewest_ ? std::max(of.change.memory, kUnknownMemory) : of.change.memory;
}

/// What the pairs of one start say; nothing when they are too few to tell an error.
std::optional<Start> Looks::start_of(const Differences& of) const {
  constexpr double kOneError = 0.3173;  // of values outside of one standard error
  if (of.logs.empty()) return std::nullopt;
  const auto interval = stats::signed_rank_interval(of.logs, kOneError, memory_of(of));
  const double error = (interval.high - interval.low) / 2;
  if (!std::isfinite(error)) return std::nullopt;
  return Start{interval.estimate, error, is_same(of)};
}

/// The same of the arithmetic means.
std::optional<Start> Looks::start_of_total(const Differences& of) const {
  if (of.sums.size() < kFewestPairs) return std::nullopt;
  const auto total = total_of(of, memory_of(of));
  if (!total || !std::isfinite(total->error) || !(total->change > -1)) return std::nullopt;
  return Start{std::log1p(total->change), total->error / (1 + total->change), is_same(of)};
}

/// Whether something else is assumed of it: of each start all pairs had the same change.
bool Looks::all_same(const Differences& of) const {
  if (!(assumed_.same.starts > 0)) return false;
  const auto known = before_.find(of.change.phase);
  if (known != before_.end() && !std::ranges::all_of(known->second, &Start::same)) return false;
  return of.logs.empty() ? known != before_.end() : is_same(of);
}

/// Of several starts that of all, as it is of the change.
void Looks::fill_total(Differences& of) const {
  if (!counts_starts()) return;
  std::vector<Start> starts;
  if (const auto known = totals_before_.find(of.change.phase); known != totals_before_.end()) starts = known->second;
  if (const auto now = start_of_total(of)) starts.push_back(*now);
  if (starts.empty()) return;
  const Together all = together(starts, assumed_of(all_same(of)));
  const double half = stats::student_quantile(0.975, all.freedom) * all.error;
  of.change.total = std::expm1(all.change);
  of.change.total_low = std::expm1(all.change - half);
  of.change.total_high = std::expm1(all.change + half);
}

stats::SignedRankInterval Looks::interval_of(const Differences& of, double error, Between& between) const {
  if (of.logs.size() < fewest_ && !counts_starts()) error = 0;
  if (!counts_starts()) return stats::signed_rank_interval(of.logs, error, of.change.memory);
  std::vector<Start> starts;
  if (const auto known = before_.find(of.change.phase); known != before_.end()) starts = known->second;
  if (const auto now = start_of(of)) starts.push_back(*now);
  if (starts.empty()) return stats::signed_rank_interval(of.logs, error, of.change.memory);
  between.same = all_same(of);
  between.assumed = assumed_of(between.same);
  const Together all = together(starts, between.assumed);
  between.spread = all.spread;
  between.told = all.freedom - between.assumed.starts;
  const double half = stats::student_quantile(1 - error / 2, all.freedom) * all.error;
  return {all.change, all.change - half, all.change + half};
}

Between Looks::fill_interval(Differences& of, double error) const {
  Between between;
  const auto interval = interval_of(of, error, between);
  of.change.change = std::expm1(interval.estimate);
  of.change.low = std::isfinite(interval.low) ? std::expm1(interval.low) : model::kNoNumber;
  of.change.high = std::isfinite(interval.high) ? std::expm1(interval.high) : model::kNoNumber;
  fill_total(of);
  return between;
}

void Looks::put_first(std::vector<Differences>& all) const {
  if (!first_) return;
  const auto found = std::ranges::find_if(all, [&](const Differences& one) { return one.change.phase == *first_; });
  if (found != all.end()) {
    std::rotate(all.begin(), found, std::next(found));
    return;
  }
  // Earlier starts had it: they decide.
  Differences none;
  none.change.phase = *first_;
  all.insert(all.begin(), std::move(none));
}

void Looks::end_start(std::span<const Differences> all) {
  if (!first_ && !all.empty() && start_of(all.front())) first_ = all.front().change.phase;
  for (const Differences& one : all) {
    if (const auto start = start_of(one)) before_[one.change.phase].push_back(*start);
    if (const auto total = start_of_total(one)) totals_before_[one.change.phase].push_back(*total);
  }
}

bool Looks::is_due(double share, std::size_t pairs) const {
  return pairs >= (counts_starts() ? kFewestPairs : fewest_) && share >= kFirstLook && share < 1 &&
         half_below(share) > spent_;
}

model::Outcome Looks::look(Differences& first, double share) {
  share = std::max(spent_, share < 1 ? half_below(share) : 1.0);
  last_ = share - spent_;
  spent_ = share;
  ++looks_;
  using enum model::Outcome;
  if (!(last_ > 0) || (first.logs.empty() && before_.empty())) return inconclusive;
  between_ = fill_interval(first, allowed_.interval * last_);
  const model::PairedChange& change = first.change;
  Between same_as_before;
  const auto sure = interval_of(first, allowed_.decision * last_, same_as_before);
  const model::Outcome outcome = change.low > -detect_ && change.high < detect_ ? no_change
                                 : sure.low > 0                                 ? regression
                                 : sure.high < 0                                ? improvement
                                                                                : inconclusive;
  return is_contradicted(outcome, change, detect_) ? inconclusive : outcome;
}

void Looks::fill(Differences& other) const {
  if (last_ > 0) static_cast<void>(fill_interval(other, allowed_.interval * last_));
}

}  // namespace culprit::ab
