#include "compare/change_point.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "compare/cycle_time.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

constexpr double kFewest = 5;  // half of the harmonic mean of the steps on both sides, summed over classes: 10 on each
constexpr std::size_t kNext = 10;      // steps on each side are next to a place
constexpr std::size_t kNextPart = 10;  // or so large a part of all
constexpr double kFewestNear = 1.5;    // as kFewest, next to the place
constexpr double kJump = 0.7;
constexpr double kMostSpreads = 4;  // of the middle: further ones count as so far
constexpr double kOfNormal = 1.4826;
constexpr double kMostPersistent = 0.9;

struct Step {
  std::uint32_t position = 0;  ///< in step_times()
  std::uint32_t of_class = 0;  ///< phase and what it worked on
  double value = 0;            ///< logarithm, less the mean of its class
};

/// By time, without what lies far out. The number of classes.
std::size_t freed(const std::vector<StepTime>& times, std::vector<Step>& steps) {
  std::map<std::pair<model::Phase, WorkClass>, std::vector<std::uint32_t>> classes;
  for (std::uint32_t i = 0; i < times.size(); ++i)
    if (times[i].time > 0 && std::isfinite(times[i].time)) classes[{times[i].phase, times[i].work}].push_back(i);
  std::uint32_t number = 0;
  std::vector<double> values;
  for (const auto& [key, positions] : classes) {
    double sum = 0;
    for (const std::uint32_t i : positions) sum += std::log(times[i].time);
    for (const std::uint32_t i : positions) {
      steps.push_back({i, number, std::log(times[i].time) - sum / static_cast<double>(positions.size())});
      values.push_back(std::abs(steps.back().value));
    }
    ++number;
  }
  std::ranges::sort(steps, {}, &Step::position);
  if (values.empty()) return 0;
  if (const double far = kMostSpreads * kOfNormal * stats::median(std::move(values)); far > 0)
    for (Step& s : steps) s.value = std::clamp(s.value, -far, far);
  return classes.size();
}

/// One class, divided at a place.
struct DividedClass {
  std::array<double, 2> count{};
  std::array<double, 2> sum{};
  [[nodiscard]] double weight() const {
    return count[0] > 0 && count[1] > 0 ? count[0] * count[1] / (count[0] + count[1]) : 0;
  }
  [[nodiscard]] double difference() const { return sum[1] / count[1] - sum[0] / count[0]; }
};

/// All classes, divided at a place: the common difference of their mean logarithms.
struct Division {
  std::vector<DividedClass> classes;
  double weight = 0;
  double weighted = 0;
  void count(const DividedClass& c, double sign) {
    if (const double w = c.weight(); w > 0) {
      weight += sign * w;
      weighted += sign * w * c.difference();
    }
  }
  /// Moves a step from behind the place to before it.
  void pass(const Step& step) {
    DividedClass& c = classes[step.of_class];
    count(c, -1);
    --c.count[1];
    c.sum[1] -= step.value;
    ++c.count[0];
    c.sum[0] += step.value;
    count(c, 1);
  }
  [[nodiscard]] double difference() const { return weighted / weight; }
};

/// By how much fewer the steps are than they look like: neighbours resemble each other.
double independent(const std::vector<Step>& steps, std::size_t at, const Division& division) {
  std::vector<double> rest;
  rest.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const DividedClass& c = division.classes[steps[i].of_class];
    const double behind = c.count[1] / (c.count[0] + c.count[1]);
    rest.push_back(steps[i].value - division.difference() * ((i >= at ? 1 : 0) - behind));
  }
  double product = 0;
  double square = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    square += rest[i] * rest[i];
    if (i > 0) product += rest[i] * rest[i - 1];
  }
  if (!(square > 0)) return 1;
  const double r =
      std::clamp(product / square + 1 / std::sqrt(static_cast<double>(steps.size())), 0.0, kMostPersistent);
  return (1 - r) / (1 + r);
}

/// Whether most of the difference is there between the steps next to the place: contexts that grow and loads
/// that drift make as large a difference, and no place is theirs.
bool is_jump(const std::vector<Step>& steps, std::size_t at, const Division& division) {
  const std::size_t next = std::max<std::size_t>(kNext, steps.size() / kNextPart);
  Division near;
  near.classes.resize(division.classes.size());
  for (std::size_t i = at - std::min(at, next); i < std::min(steps.size(), at + next); ++i) {
    DividedClass& c = near.classes[steps[i].of_class];
    ++c.count.at(i < at ? 0 : 1);
    c.sum.at(i < at ? 0 : 1) += steps[i].value;
  }
  for (const DividedClass& c : near.classes) near.count(c, 1);
  return near.weight >= kFewestNear && near.difference() / division.difference() >= kJump;
}

/// A place, and how sure it is.
struct Found {
  Ns begin = 0;  ///< of the first step behind it
  double t = 0;  ///< 0: there is none
};

Found search(const std::vector<StepTime>& times) {
  std::vector<Step> steps;
  const std::size_t classes = freed(times, steps);
  if (steps.size() < classes + 2) return {};
  Division begin;
  begin.classes.resize(classes);
  double squares = 0;
  for (const Step& s : steps) {
    ++begin.classes[s.of_class].count[1];
    begin.classes[s.of_class].sum[1] += s.value;
    squares += s.value * s.value;
  }
  const auto freedom = static_cast<double>(steps.size() - classes - 1);
  std::size_t best = 0;
  double most = 0;
  Division division = begin;
  for (std::size_t k = 1; k < steps.size(); ++k) {
    division.pass(steps[k - 1]);
    if (division.weight < kFewest) continue;
    const double explained = division.weighted * division.weighted / division.weight;
    const double rest = std::max(squares - explained, 1e-12 * squares) / freedom;
    if (!(rest > 0) || explained / rest <= most) continue;
    most = explained / rest;
    best = k;
  }
  if (best == 0) return {};
  Division& at_best = begin;
  for (std::size_t k = 0; k < best; ++k) at_best.pass(steps[k]);
  if (std::abs(at_best.difference()) < std::log1p(kLeastChange)) return {};
  if (!is_jump(steps, best, at_best)) return {};
  return {times[steps[best].position].begin, std::sqrt(most * independent(steps, best, at_best))};
}

}  // namespace

std::optional<std::uint32_t> change_point(const model::Cycles& cycles) {
  const std::vector<StepTime> times = step_times(cycles);
  Found best = search(times);
  for (const model::Phase phase : model::kPhases) {
    std::vector<StepTime> of_phase;
    std::ranges::copy_if(times, std::back_inserter(of_phase), [&](const StepTime& t) { return t.phase == phase; });
    if (of_phase.size() == times.size()) continue;
    if (const Found found = search(of_phase); found.t > best.t) best = found;
  }
  if (best.t < kSureChange) return std::nullopt;
  const auto first = std::ranges::find_if(cycles.cycles, [&](const model::Cycle& c) { return c.begin >= best.begin; });
  return first == cycles.cycles.end() ? std::nullopt : std::optional(first->number);
}

}  // namespace culprit::compare
