#include "compare/bystanders.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace culprit::compare {

namespace {

constexpr double kLeastCpus = 0.1;
constexpr double kMuchMore = 1.5;

}  // namespace

std::vector<std::pair<std::string, std::array<double, 2>>> bystanders_that_moved(
    const std::map<std::string, double>& base, const std::map<std::string, double>& candidate) {
  std::map<std::string, std::array<double, 2>> names;
  for (const auto& [name, cpus] : base) names[name][0] = cpus;
  for (const auto& [name, cpus] : candidate) names[name][1] = cpus;
  std::erase_if(names, [](const auto& name) {
    const auto [less, more] = std::minmax(name.second[0], name.second[1]);
    return more - less < kLeastCpus || more < kMuchMore * less;
  });
  std::vector<std::pair<std::string, std::array<double, 2>>> moved(names.begin(), names.end());
  std::ranges::stable_sort(moved, std::greater(), [](const auto& m) { return std::abs(m.second[1] - m.second[0]); });
  return moved;
}

bool was_held_back(double more_cpus, double more_throttled_ns_per_s) {
  constexpr double kCompetitor = 0.5;
  constexpr double kThrottled = 1e8;
  return more_cpus >= kCompetitor || more_throttled_ns_per_s > kThrottled;
}

double surely_longer(const Waited& held_back, const Waited& other) {
  constexpr double kUsual = 3;
  constexpr double kLeast = 0.05;
  constexpr double kEnough = 0.1;
  if (!(other.all > 0) || held_back.all <= other.all) return 0;
  const double by_waiting = (held_back.for_cpu - kUsual * other.for_cpu) / other.all - kLeast;
  const double longer = std::min(by_waiting, held_back.all / other.all - 1);
  return longer >= kEnough ? longer : 0;
}

}  // namespace culprit::compare
