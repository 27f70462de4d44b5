#include "compare/cycle_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "compare/series.h"
#include "stats/distributions.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::Outcome;

constexpr double kAlpha = 0.05;
constexpr std::size_t kFewestOfADrift = 4;  // values of a side
constexpr double kMuch = 0.3;  // of logarithms: 35 %; means of two recordings of the same were seen to differ by 34

/// How far the values of two sides lie apart, and how far those of one side spread.
struct Gap {
  int direction = 0;  ///< 1: every value of `b` is larger than every one of `a`; -1 the other way round; else 0
  double width = 0;   ///< between the nearest two
  double range = 0;   ///< of the side that spreads more
};

Gap gap_of(std::span<const CycleValue> a, std::span<const CycleValue> b) {
  const auto [a_least, a_most] = std::ranges::minmax(a, {}, &CycleValue::value);
  const auto [b_least, b_most] = std::ranges::minmax(b, {}, &CycleValue::value);
  Gap gap;
  gap.range = std::max(a_most.value - a_least.value, b_most.value - b_least.value);
  if (b_least.value > a_most.value) {
    gap.direction = 1;
    gap.width = b_least.value - a_most.value;
  } else if (b_most.value < a_least.value) {
    gap.direction = -1;
    gap.width = a_least.value - b_most.value;
  }
  return gap;
}

/// A drift that went on from one recording to the other twice as far as it went inside of one would not bridge the gap.
bool no_drift_bridges(const Gap& gap, std::size_t fewest, double rare) {
  return fewest >= kFewestOfADrift && gap.width > kMuch && gap.width > 2 * gap.range + rare;
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

constexpr double kPower = 0.8416;        // of the normal distribution, four times out of five
constexpr double kPowerOfBoth = 1.2816;  // that neither of two bounds is missed, which each is one time in ten

/// Recordings of each side that would tell a difference beyond the tolerance from one inside it; `error`: of one
/// against one.
std::size_t enough_recordings(double difference, double error, double upper, double lower) {
  const double distance = difference >= 0 ? std::abs(difference - upper) : std::abs(difference - lower);
  const bool inside = lower < difference && difference < upper;
  const double power = inside ? kPowerOfBoth : kPower;
  for (std::size_t n = kFewestRecordings; n <= model::kMostRecordings; ++n) {
    const double quantile = stats::student_quantile(0.975, static_cast<double>(2 * n - 2));
    if ((quantile + power) * error / std::sqrt(static_cast<double>(n)) <= distance) return n;
  }
  return model::kMostRecordings + 1;
}

/// Standard errors beyond the half width at which an effect is seen four times out of five in another comparison of
/// the kind. Both half widths are estimates of few degrees of freedom, the one that is told beforehand and the one that
/// decides then: t / sqrt(degrees) joins what the difference itself spreads by. The last factor is what simulated
/// ratios of two such estimates, which are skew, ask for beyond that. With `one_width` the same earlier recordings tell
/// how wide both are.
double errors_until_seen(double degrees, bool one_width) {
  constexpr double kSkew = 1.4;
  constexpr double kShare = 0.82;       // of the comparisons, so that it is no less than four of five
  constexpr double kOfNormal = 0.9154;  // its quantile
  if (one_width) return stats::student_quantile(kShare, degrees);
  const double quantile = stats::student_quantile(0.975, degrees);
  return kOfNormal * std::sqrt(1 + quantile * quantile / degrees) * (1 + kSkew / degrees);
}

/// What an interval of the difference of mean logarithms says; one recording against one has the error `of_two`.
void decide(const MeanDifference& d, double of_two, model::CycleTimeOutcome& result) {
  const double upper = std::log1p(result.tolerance);
  const double lower = -upper;
  result.low = std::expm1(d.difference - d.half);
  result.high = std::expm1(d.difference + d.half);
  result.smallest_seen = std::expm1(upper + d.half + errors_until_seen(d.degrees, result.earlier > 0) * d.error);
  if (d.difference - d.half > upper)
    result.outcome = Outcome::regression;
  else if (d.difference + d.half < lower)
    result.outcome = Outcome::improvement;
  else if (d.difference - d.half >= lower && d.difference + d.half <= upper)
    result.outcome = Outcome::no_change;
  else
    result.enough = enough_recordings(d.difference, of_two, upper, lower);
}

/// NaN without any.
double median_of_positive(std::span<const double> times) {
  std::vector<double> positive;
  std::ranges::copy_if(times, std::back_inserter(positive), [](double t) { return t > 0 && std::isfinite(t); });
  return stats::median(std::move(positive));
}

/// Mean logarithm of each recording that has positive times.
std::vector<double> means_of_recordings(const RecordedTimes& side) {
  std::map<std::uint32_t, std::pair<double, double>> sums;  // and how many
  for (std::size_t i = 0; i < side.times.size(); ++i) {
    if (!(side.times[i] > 0) || !std::isfinite(side.times[i])) continue;
    auto& [sum, n] = sums[side.recordings[i]];
    sum += std::log(side.times[i]);
    n += 1;
  }
  std::vector<double> means;
  means.reserve(sums.size());
  for (const auto& [recording, sum] : sums) means.push_back(sum.first / sum.second);
  return means;
}

}  // namespace

std::vector<StepTime> step_times(const model::Cycles& cycles, std::optional<std::uint16_t> rank) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::map<std::uint32_t, StepTime> steps;
  std::map<std::uint32_t, std::pair<WorkClass, std::int64_t>> works;  // and its batch
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const model::Cycle& cycle = cycles.cycles[i];
    if (!whole[i]) continue;
    if (auto& [work, batch] = works[cycle.number]; work == WorkClass()) {
      work = work_class(cycle.workload, cycle.phase);
      batch = cycle.workload.batch;
    }
    if (rank && cycle.rank != *rank) continue;
    const auto time = static_cast<double>(time_of(cycle, cycles.anchor_given));
    StepTime& step =
        steps.try_emplace(cycle.number, StepTime{cycle.phase, cycle.phase_guessed, {}, 0, 0, 0, cycle.begin, 0})
            .first->second;
    step.time = std::max(step.time, time);
    step.period = std::max(step.period, static_cast<double>(cycle.period));
    step.prompts = std::max(step.prompts, prompts_of(cycle.workload, cycle.phase));
  }
  std::vector<StepTime> times;
  times.reserve(steps.size());
  for (auto& [number, step] : steps) {
    std::tie(step.work, step.batch) = works[number];
    times.push_back(step);
  }
  return times;
}

std::vector<model::PictureStep> picture_steps(const model::Cycles& cycles) {
  std::vector<model::PictureStep> steps;
  for (const StepTime& step : step_times(cycles)) steps.push_back({step.phase, step.begin, static_cast<Ns>(step.time)});
  std::ranges::stable_sort(steps, {}, &model::PictureStep::begin);
  return steps;
}

model::CycleTimeOutcome judge_cycle_time(std::span<const double> base, std::span<const double> candidate,
                                         const CycleTimeOptions& options) {
  const std::vector<CycleValue> base_logs = logs_of(base);
  const std::vector<CycleValue> candidate_logs = logs_of(candidate);
  Series a = summarise(base_logs, base_logs.size());
  Series b = summarise(candidate_logs, candidate_logs.size());
  for (const auto& [side, disturbed] : {std::pair(&a, options.disturbed[0]), std::pair(&b, options.disturbed[1])})
    if (disturbed) side->effective = side->likely = static_cast<double>(side->n);
  for (const auto& [side, counts_as] : {std::pair(&a, options.counts_as[0]), std::pair(&b, options.counts_as[1])}) {
    side->effective *= counts_as;
    side->likely *= counts_as;
  }
  model::CycleTimeOutcome result;
  result.tolerance = options.tolerance;
  const double between = options.measured ? options.measured->deviation : options.between;
  result.between = between;
  if (options.measured) result.earlier = options.measured->recordings;
  result.cycles = {a.n, b.n};
  result.effective = {a.effective, b.effective};
  result.median_ns = {median_of_positive(base), median_of_positive(candidate)};
  if (a.n > 0) result.time_ns[0] = std::exp(a.mean);
  if (b.n > 0) result.time_ns[1] = std::exp(b.mean);
  if (a.n == 0 || b.n == 0) return result;
  const double upper = std::log1p(options.tolerance);
  const double lower = -upper;
  result.change = std::expm1(b.mean - a.mean);
  const double fewest = options.measured ? std::min(options.fewest, kFewestMeasured) : options.fewest;
  if (a.effective < fewest || b.effective < fewest) {
    // A difference of two recordings of the same that is rare.
    const double quantile =
        options.measured ? stats::student_quantile(0.975, static_cast<double>(result.earlier - 1)) : 1.96;
    const double rare = quantile * std::sqrt(2.0) * between;
    const Gap gap = gap_of(base_logs, candidate_logs);
    if (separation_by_chance(a.likely, b.likely) > kAlpha && !no_drift_bridges(gap, std::min(a.n, b.n), rare))
      return result;
    const int separated = gap.direction;
    if (separated > 0 && b.mean - a.mean - rare > upper) result.outcome = Outcome::regression;
    if (separated < 0 && b.mean - a.mean + rare < lower) result.outcome = Outcome::improvement;
    return result;
  }
  const double counts = 2 * options.counts * options.counts;
  const MeanDifference d =
      options.measured ? difference_of(a, b, {2 * between * between, static_cast<double>(result.earlier - 1), counts})
                       : difference_of(a, b, 2 * between * between + counts);
  decide(d, d.error, result);
  if (result.outcome == Outcome::inconclusive) {
    const MeanDifference of_these = difference_of(a, b, counts);
    if (std::abs(of_these.difference) - of_these.half > upper)
      result.these_differ = {std::expm1(of_these.difference), std::expm1(of_these.difference - of_these.half),
                             std::expm1(of_these.difference + of_these.half)};
  }
  return result;
}

std::optional<model::CycleTimeOutcome> judge_recordings(const RecordedTimes& base, const RecordedTimes& candidate,
                                                        double tolerance, double assumed) {
  const std::array sides = {means_of_recordings(base), means_of_recordings(candidate)};
  if (std::min(sides[0].size(), sides[1].size()) < kFewestRecordings) return std::nullopt;
  model::CycleTimeOutcome result;
  result.tolerance = tolerance;
  std::array<Series, 2> series;
  double squares = 0;
  double degrees = 0;
  for (std::size_t s = 0; s < 2; ++s) {
    Series& side = series[s];
    side.n = sides[s].size();
    side.effective = side.likely = static_cast<double>(side.n);
    for (const double mean : sides[s]) side.mean += mean / side.effective;
    for (const double mean : sides[s]) side.variance += (mean - side.mean) * (mean - side.mean) / (side.effective - 1);
    squares += side.variance * (side.effective - 1);
    degrees += side.effective - 1;
    result.cycles[s] = (s == 0 ? base : candidate).times.size();
    result.effective[s] = side.effective;
    result.time_ns[s] = std::exp(side.mean);
  }
  result.median_ns = {median_of_positive(base.times), median_of_positive(candidate.times)};
  result.between = std::sqrt(squares / degrees);
  result.change = std::expm1(series[1].mean - series[0].mean);
  result.recordings = {sides[0].size(), sides[1].size()};
  decide(difference_of(series[0], series[1], 2 * assumed * assumed), std::sqrt(series[0].variance + series[1].variance),
         result);
  return result;
}

double spread_of_logs(std::span<const double> values) {
  const std::vector<CycleValue> logs = logs_of(values);
  return std::min(std::sqrt(summarise(logs, logs.size()).variance), kMostDrift);
}

double drift_inside(std::span<const double> values) {
  constexpr std::size_t kStretches = 8;
  const std::vector<CycleValue> logs = logs_of(values);
  if (logs.size() < 2 * kStretches) return 0;
  std::vector<double> means;
  for (std::size_t s = 0; s < kStretches; ++s) {
    const std::size_t begin = logs.size() * s / kStretches;
    const std::size_t end = logs.size() * (s + 1) / kStretches;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += logs[i].value;
    means.push_back(std::exp(sum / static_cast<double>(end - begin)));
  }
  return spread_of_logs(means);
}

model::Outcome overall(const std::vector<model::CycleTimeOutcome>& outcomes) {
  if (std::ranges::none_of(outcomes, model::is_judged)) return Outcome::inconclusive;
  for (const Outcome worst : {Outcome::regression, Outcome::inconclusive, Outcome::improvement})
    if (std::ranges::any_of(outcomes, [&](const auto& o) { return is_judged(o) && o.outcome == worst; })) return worst;
  return Outcome::no_change;
}

}  // namespace culprit::compare
