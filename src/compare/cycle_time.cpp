#include "compare/cycle_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compare/series.h"

namespace culprit::compare {

namespace {

using model::Outcome;

constexpr double kAlpha = 0.05;

std::vector<CycleValue> logs_of(std::span<const double> values) {
  std::vector<CycleValue> logs;
  for (const double v : values)
    if (v > 0 && std::isfinite(v)) logs.push_back({static_cast<std::uint32_t>(logs.size()), std::log(v)});
  return logs;
}

/// 1 when every value of `b` is larger than every one of `a`, -1 the other way round, else 0.
int separation(std::span<const CycleValue> a, std::span<const CycleValue> b) {
  const auto [a_least, a_most] = std::ranges::minmax(a, {}, &CycleValue::value);
  const auto [b_least, b_most] = std::ranges::minmax(b, {}, &CycleValue::value);
  return b_least.value > a_most.value ? 1 : b_most.value < a_least.value ? -1 : 0;
}

/// On the device that idles least, else on the host. Outside an anchor that the user named there is work of which
/// nothing is known: the whole period counts.
Ns time_of(const model::Cycle& cycle, bool anchor_given) {
  const auto least = std::ranges::min_element(cycle.devices, {}, &model::DeviceWindow::idle);
  if (least == cycle.devices.end() || least->end <= least->begin)
    return anchor_given ? cycle.period : cycle.period - cycle.no_work;
  const Ns window = least->end - least->begin;
  return anchor_given ? window : window - std::min(cycle.no_work, least->idle);
}

}  // namespace

std::vector<StepTime> step_times(const model::Cycles& cycles) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::map<std::uint32_t, StepTime> steps;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const model::Cycle& cycle = cycles.cycles[i];
    if (!whole[i]) continue;
    const auto time = static_cast<double>(time_of(cycle, cycles.anchor_given));
    StepTime& step = steps.try_emplace(cycle.number, StepTime{cycle.phase, cycle.phase_guessed, 0}).first->second;
    step.time = std::max(step.time, time);
  }
  std::vector<StepTime> times;
  times.reserve(steps.size());
  for (const auto& [number, step] : steps) times.push_back(step);
  return times;
}

model::CycleTimeOutcome judge_cycle_time(std::span<const double> base, std::span<const double> candidate,
                                         const CycleTimeOptions& options) {
  const std::vector<CycleValue> base_logs = logs_of(base);
  const std::vector<CycleValue> candidate_logs = logs_of(candidate);
  const Series a = summarise(base_logs, base_logs.size());
  const Series b = summarise(candidate_logs, candidate_logs.size());
  model::CycleTimeOutcome result;
  result.tolerance = options.tolerance;
  result.between = options.between;
  result.cycles = {a.n, b.n};
  result.effective = {a.effective, b.effective};
  if (a.n > 0) result.time_ns[0] = std::exp(a.mean);
  if (b.n > 0) result.time_ns[1] = std::exp(b.mean);
  if (a.n == 0 || b.n == 0) return result;
  const double upper = std::log1p(options.tolerance);
  const double lower = std::log1p(-options.tolerance);
  result.change = std::expm1(b.mean - a.mean);
  if (a.effective < options.fewest || b.effective < options.fewest) {
    // 1.96 sqrt(2): a difference of two recordings of the same that is rare.
    const double rare = 2.772 * options.between;
    if (separation_by_chance(a.likely, b.likely) > kAlpha) return result;
    const int separated = separation(base_logs, candidate_logs);
    if (separated > 0 && b.mean - a.mean - rare > upper) result.outcome = Outcome::regression;
    if (separated < 0 && b.mean - a.mean + rare < lower) result.outcome = Outcome::improvement;
    return result;
  }
  const auto [difference, error, degrees, half] = difference_of(a, b, 2 * options.between * options.between);
  result.low = std::expm1(difference - half);
  result.high = std::expm1(difference + half);
  result.smallest_seen = std::expm1(upper + half);
  if (difference - half > upper)
    result.outcome = Outcome::regression;
  else if (difference + half < lower)
    result.outcome = Outcome::improvement;
  else if (difference - half >= lower && difference + half <= upper)
    result.outcome = Outcome::no_change;
  return result;
}

model::Outcome overall(const std::vector<model::CycleTimeOutcome>& outcomes) {
  if (outcomes.empty()) return Outcome::inconclusive;
  for (const Outcome worst : {Outcome::regression, Outcome::inconclusive, Outcome::improvement})
    if (std::ranges::any_of(outcomes, [&](const auto& o) { return o.outcome == worst; })) return worst;
  return Outcome::no_change;
}

}  // namespace culprit::compare
