#include "compare/machine.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "compare/series.h"

namespace culprit::compare {

namespace {

constexpr std::string_view kProbe = "host.speed.branches";

/// Logarithms of what the probe took, by CPU.
using Times = std::map<std::string, std::vector<double>, std::less<>>;

bool is_of_cpu(std::string_view name) { return name.starts_with("host.cpu") && name.ends_with(".speed.branches"); }

template <class Is>
Times times_of(std::span<const model::Recording> recordings, const Is& is) {
  Times times;
  for (const model::Recording& recording : recordings)
    for (const model::HostCounter& counter : recording.host.counters)
      if (is(counter.name))
        for (const CycleValue& log : logs_of(counter.windows)) times[counter.name].push_back(log.value);
  return times;
}

/// Of both sides, less what the baseline took on the same CPU; CPUs of one side alone are left out.
std::array<Series, 2> differences(const Times& base, const Times& candidate) {
  std::array<std::vector<CycleValue>, 2> values;
  for (const auto& [cpu, of_base] : base) {
    const auto of_candidate = candidate.find(cpu);
    if (of_candidate == candidate.end() || of_base.empty()) continue;
    const double mean = std::accumulate(of_base.begin(), of_base.end(), 0.0) / static_cast<double>(of_base.size());
    for (const double value : of_base)
      values[0].push_back({static_cast<std::uint32_t>(values[0].size()), value - mean});
    for (const double value : of_candidate->second)
      values[1].push_back({static_cast<std::uint32_t>(values[1].size()), value - mean});
  }
  return {summarise(values[0], values[0].size()), summarise(values[1], values[1].size())};
}

}  // namespace

std::optional<model::MachineChange> machine_change(std::span<const model::Recording> base,
                                                   std::span<const model::Recording> candidate) {
  std::array of = {times_of(base, is_of_cpu), times_of(candidate, is_of_cpu)};
  // Recordings that were made before do not tell where.
  if (of[0].empty() || of[1].empty())
    for (std::size_t s = 0; s < 2; ++s)
      of[s] = times_of(s == 0 ? base : candidate, [](std::string_view name) { return name == kProbe; });
  const std::array sides = differences(of[0], of[1]);
  if (sides[0].effective < kFewCycles || sides[1].effective < kFewCycles) return std::nullopt;
  const MeanDifference d = difference_of(sides[0], sides[1], 0);
  if (std::abs(d.difference) < std::log1p(kLeastOfMachine) || std::abs(d.difference) <= d.half) return std::nullopt;
  return model::MachineChange{std::expm1(d.difference), std::expm1(d.difference - d.half),
                              std::expm1(d.difference + d.half)};
}

}  // namespace culprit::compare
