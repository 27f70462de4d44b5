#include "compare/cycle_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "stats/moments.h"
#include "stats/welch.h"

namespace culprit::compare {

namespace {

using model::Outcome;

constexpr double kAlpha = 0.05;
constexpr double kFewCycles = 4;

struct Side {
  std::vector<double> logs;
  double mean = 0;
  double variance = 0;
  double effective = 0;
};

double autocorrelation(const std::vector<double>& values, double mean) {
  double above = 0;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    below += (values[i] - mean) * (values[i] - mean);
    if (i > 0) above += (values[i] - mean) * (values[i - 1] - mean);
  }
  return below > 0 ? above / below : 0;
}

Side summarise(std::span<const double> values) {
  Side side;
  for (const double v : values)
    if (v > 0 && std::isfinite(v)) side.logs.push_back(std::log(v));
  if (side.logs.empty()) return side;
  const auto n = static_cast<double>(side.logs.size());
  const stats::Moments m = stats::moments(side.logs);
  side.mean = m.mean;
  side.variance = std::isnan(m.std) ? 0 : m.std * m.std;
  const double r = std::clamp(autocorrelation(side.logs, m.mean) + 1 / std::sqrt(n), 0.0, 0.9);
  side.effective = n * (1 - r) / (1 + r);
  return side;
}

/// The t beyond which, on both ends, a share of kAlpha lies.
double critical_t(double degrees) {
  double low = 0;
  double high = 1e4;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (stats::student_two_sided_p(middle, degrees) > kAlpha ? low : high) = middle;
  }
  return high;
}

/// 1 when every value of `b` is larger than every one of `a`, -1 the other way round, else 0.
int separation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto [a_least, a_most] = std::ranges::minmax(a);
  const auto [b_least, b_most] = std::ranges::minmax(b);
  return b_least > a_most ? 1 : b_most < a_least ? -1 : 0;
}

/// That two groups of one distribution separate fully, either way: 2 / C(n + m, n).
double separation_by_chance(std::size_t n, std::size_t m) {
  const auto a = static_cast<double>(n);
  const auto b = static_cast<double>(m);
  return 2 * std::exp(std::lgamma(a + 1) + std::lgamma(b + 1) - std::lgamma(a + b + 1));
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
  for (const auto& [number, step] : steps) times.push_back(step);
  return times;
}

model::CycleTimeOutcome judge_cycle_time(std::span<const double> base, std::span<const double> candidate,
                                         const CycleTimeOptions& options) {
  const Side a = summarise(base);
  const Side b = summarise(candidate);
  model::CycleTimeOutcome result;
  result.tolerance = options.tolerance;
  result.between = options.between;
  result.cycles = {a.logs.size(), b.logs.size()};
  result.effective = {a.effective, b.effective};
  if (a.logs.empty() || b.logs.empty()) return result;
  const double difference = b.mean - a.mean;
  const double upper = std::log1p(options.tolerance);
  const double lower = std::log1p(-options.tolerance);
  result.change = std::expm1(difference);
  if (a.effective < kFewCycles || b.effective < kFewCycles) {
    // 1.96 sqrt(2): a difference of two recordings of the same that is rare.
    const double rare = 2.772 * options.between;
    if (separation_by_chance(a.logs.size(), b.logs.size()) > kAlpha) return result;
    const int separated = separation(a.logs, b.logs);
    if (separated > 0 && difference - rare > upper) result.outcome = Outcome::regression;
    if (separated < 0 && difference + rare < lower) result.outcome = Outcome::improvement;
    return result;
  }
  const double va = a.variance / a.effective;
  const double vb = b.variance / b.effective;
  const double between = 2 * options.between * options.between;
  const double spread = va * va / (a.effective - 1) + vb * vb / (b.effective - 1);
  const double total = va + vb + between;
  const double degrees = spread > 0 ? total * total / spread : std::numeric_limits<double>::infinity();
  const double half = critical_t(degrees) * std::sqrt(total);
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
