#include "compare/change_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compare/cycle_time.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

constexpr std::size_t kFewestSteps = 16;  // on each side: fewer are how a run begins or ends
constexpr std::size_t kFewestOfClass = 6;
constexpr double kMostSpreads = 4;  // of the middle: further ones count as so far
constexpr double kOfNormal = 1.4826;
constexpr double kMostAlike = 0.9;

struct Step {
  std::uint32_t position = 0;  ///< in step_times()
  double value = 0;
};

/// Logarithms, less the mean of their phase and class of work, without what lies far out.
std::vector<Step> freed(const std::vector<StepTime>& times) {
  std::map<std::pair<model::Phase, WorkClass>, std::vector<std::uint32_t>> classes;
  for (std::uint32_t i = 0; i < times.size(); ++i)
    if (times[i].time > 0 && std::isfinite(times[i].time)) classes[{times[i].phase, times[i].work}].push_back(i);
  std::vector<Step> steps;
  for (const auto& [key, positions] : classes) {
    if (positions.size() < kFewestOfClass) continue;
    double sum = 0;
    for (const std::uint32_t i : positions) sum += std::log(times[i].time);
    for (const std::uint32_t i : positions)
      steps.push_back({i, std::log(times[i].time) - sum / static_cast<double>(positions.size())});
  }
  std::ranges::sort(steps, {}, &Step::position);
  return steps;
}

void clamp_far(std::vector<Step>& steps) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const Step& s : steps) values.push_back(s.value);
  const double middle = stats::median(values);
  for (double& v : values) v = std::abs(v - middle);
  const double spread = kOfNormal * stats::median(std::move(values));
  if (!(spread > 0)) return;
  for (Step& s : steps) s.value = std::clamp(s.value, middle - kMostSpreads * spread, middle + kMostSpreads * spread);
}

/// Sums over the first n steps.
struct Sums {
  std::vector<double> value{0};
  std::vector<double> square{0};
};

double variance(const Sums& sums, std::size_t from, std::size_t to) {
  const auto n = static_cast<double>(to - from);
  const double mean = (sums.value[to] - sums.value[from]) / n;
  return std::max(0.0, (sums.square[to] - sums.square[from]) / n - mean * mean) * n / (n - 1);
}

double mean(const Sums& sums, std::size_t from, std::size_t to) {
  return (sums.value[to] - sums.value[from]) / static_cast<double>(to - from);
}

/// By how much fewer the values of both parts are than they look like: neighbours resemble each other.
double independent(const std::vector<Step>& steps, const Sums& sums, std::size_t at) {
  double product = 0;
  double square = 0;
  const double before = mean(sums, 0, at);
  const double behind = mean(sums, at, steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double v = steps[i].value - (i < at ? before : behind);
    square += v * v;
    if (i > 0 && i != at) product += v * (steps[i - 1].value - (i - 1 < at ? before : behind));
  }
  if (!(square > 0)) return 1;
  const double r = std::clamp(product / square + 1 / std::sqrt(static_cast<double>(steps.size())), 0.0, kMostAlike);
  return (1 - r) / (1 + r);
}

}  // namespace

std::optional<std::uint32_t> change_point(const model::Cycles& cycles) {
  const std::vector<StepTime> times = step_times(cycles);
  std::vector<Step> steps = freed(times);
  if (steps.size() < 2 * kFewestSteps) return std::nullopt;
  clamp_far(steps);
  Sums sums;
  for (const Step& s : steps) {
    sums.value.push_back(sums.value.back() + s.value);
    sums.square.push_back(sums.square.back() + s.value * s.value);
  }
  const std::size_t n = steps.size();
  std::size_t best = 0;
  double most = 0;
  for (std::size_t k = kFewestSteps; k + kFewestSteps <= n; ++k) {
    const double error =
        std::sqrt(variance(sums, 0, k) / static_cast<double>(k) + variance(sums, k, n) / static_cast<double>(n - k));
    const double difference = std::abs(mean(sums, k, n) - mean(sums, 0, k));
    const double t = error > 0 ? difference / error : difference > 0 ? std::numeric_limits<double>::infinity() : 0;
    if (t > most) {
      most = t;
      best = k;
    }
  }
  if (best == 0) return std::nullopt;
  if (most * std::sqrt(independent(steps, sums, best)) < kSureChange) return std::nullopt;
  if (std::abs(mean(sums, best, n) - mean(sums, 0, best)) < std::log1p(kLeastChange)) return std::nullopt;
  const Ns begin = times[steps[best].position].begin;
  const auto first = std::ranges::find_if(cycles.cycles, [&](const model::Cycle& c) { return c.begin >= begin; });
  return first == cycles.cycles.end() ? std::nullopt : std::optional(first->number);
}

}  // namespace culprit::compare
