#include "compare/bursts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "stats/mann_whitney.h"

namespace culprit::compare {

namespace {

constexpr double kBurstOfCpus = 0.3;         // CPUs more than the other side ever saw
constexpr double kStillQuiet = 0.5;          // of that: so much more is as good as nobody
constexpr std::size_t kFewestStretches = 3;  // stretches of either kind
constexpr double kChanceOfBursts = 0.01;     // p of chance
constexpr double kLongerThen = 1.1;          // times

/// Stretches of one kind.
struct StretchSums {
  std::vector<double> step_ns;  ///< mean of each
  double others = 0;
  double steps = 0;
  double period_ns = 0;

  void add(const model::Stretch& stretch) {
    step_ns.push_back(stretch.period_ns / stretch.steps);
    others += stretch.others;
    steps += stretch.steps;
    period_ns += stretch.period_ns;
  }
};

std::optional<model::Bursts> bursts_of_side(const model::HostEvidence& side, const model::HostEvidence& other) {
  if (side.stretches.empty() || other.stretches.empty()) return std::nullopt;
  const double usual = std::ranges::max_element(other.stretches, {}, &model::Stretch::others)->others;
  std::array<StretchSums, 2> parts;  // without them, and beside them
  for (const model::Stretch& stretch : side.stretches) {
    const double more = stretch.others - usual;
    if (stretch.steps <= 0 || (more > kStillQuiet * kBurstOfCpus && more < kBurstOfCpus)) continue;
    parts[more >= kBurstOfCpus ? 1 : 0].add(stretch);
  }
  const auto& [quiet, busy] = parts;
  if (quiet.step_ns.size() < kFewestStretches || busy.step_ns.size() < kFewestStretches) return std::nullopt;
  const auto mean = [](const StretchSums& part) { return part.period_ns / part.steps; };
  if (mean(busy) < kLongerThen * mean(quiet) || stats::mann_whitney_p(quiet.step_ns, busy.step_ns) > kChanceOfBursts)
    return std::nullopt;
  model::Bursts bursts;
  const auto stretches = [](const StretchSums& part) { return static_cast<double>(part.step_ns.size()); };
  bursts.of_time = stretches(busy) / (stretches(quiet) + stretches(busy));
  bursts.of_steps = busy.steps / (quiet.steps + busy.steps);
  bursts.cpus = {quiet.others / stretches(quiet), busy.others / stretches(busy)};
  bursts.step_ns = {mean(quiet), mean(busy)};
  return bursts;
}

}  // namespace

std::optional<model::Bursts> bursts_of(const model::HostEvidence& base, const model::HostEvidence& candidate) {
  if (auto found = bursts_of_side(candidate, base)) return found;
  auto found = bursts_of_side(base, candidate);
  if (found) found->side = 0;
  return found;
}

}  // namespace culprit::compare
