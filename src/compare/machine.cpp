#include "compare/machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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
constexpr std::string_view kMemoryProbe = "host.speed.memory";
constexpr std::uint64_t kFewestSamples = 4;  // on one CPU

/// What the probe took.
struct Times {
  std::vector<double> logs;  ///< of the windows, which hold the last sample
  std::uint64_t samples = 0;
};
using TimesOfCpus = std::map<std::string, Times, std::less<>>;

bool is_of_cpu(std::string_view name) { return name.starts_with("host.cpu") && name.ends_with(".speed.branches"); }

template <class Is>
TimesOfCpus times_of(std::span<const model::Recording> recordings, const Is& is) {
  TimesOfCpus times;
  for (const model::Recording& recording : recordings)
    for (const model::HostCounter& counter : recording.host.counters) {
      if (!is(counter.name)) continue;
      Times& of = times[counter.name];
      of.samples += counter.samples;
      for (const CycleValue& log : logs_of(counter.windows)) of.logs.push_back(log.value);
    }
  return times;
}

/// Of both sides, less what the baseline took on the same CPU; CPUs of one side alone are left out, and those on which
/// one hardly was.
std::array<Series, 2> differences(const TimesOfCpus& base, const TimesOfCpus& candidate) {
  std::array<std::vector<CycleValue>, 2> values;
  std::array<std::uint64_t, 2> samples{};
  for (const auto& [cpu, of_base] : base) {
    const auto found = candidate.find(cpu);
    if (found == candidate.end()) continue;
    const Times& of_candidate = found->second;
    if (std::min(of_base.samples, of_candidate.samples) < kFewestSamples || of_base.logs.empty()) continue;
    const double mean =
        std::accumulate(of_base.logs.begin(), of_base.logs.end(), 0.0) / static_cast<double>(of_base.logs.size());
    for (std::size_t s = 0; s < 2; ++s) {
      const Times& of = s == 0 ? of_base : of_candidate;
      samples[s] += of.samples;
      for (const double log : of.logs) values[s].push_back({static_cast<std::uint32_t>(values[s].size()), log - mean});
    }
  }
  std::array<Series, 2> sides;
  for (std::size_t s = 0; s < 2; ++s) {
    sides[s] = summarise(values[s], values[s].size());
    sides[s].effective = std::min(sides[s].effective, static_cast<double>(samples[s]));
    sides[s].likely = std::min(sides[s].likely, static_cast<double>(samples[s]));
  }
  return sides;
}

/// `least`: relative.
std::optional<model::MachineChange> change_of(const std::array<TimesOfCpus, 2>& of, double least) {
  const std::array sides = differences(of[0], of[1]);
  if (sides[0].effective < kFewCycles || sides[1].effective < kFewCycles) return std::nullopt;
  const MeanDifference d = difference_of(sides[0], sides[1], 0);
  if (std::abs(d.difference) < std::log1p(least) || std::abs(d.difference) <= d.half) return std::nullopt;
  return model::MachineChange{std::expm1(d.difference), std::expm1(d.difference - d.half),
                              std::expm1(d.difference + d.half)};
}

}  // namespace

std::optional<model::MachineChange> machine_change(std::span<const model::Recording> base,
                                                   std::span<const model::Recording> candidate) {
  std::array of = {times_of(base, is_of_cpu), times_of(candidate, is_of_cpu)};
  // Recordings that were made before do not tell where.
  if (of[0].empty() || of[1].empty())
    for (std::size_t s = 0; s < 2; ++s)
      of[s] = times_of(s == 0 ? base : candidate, [](std::string_view name) { return name == kProbe; });
  return change_of(of, kLeastOfMachine);
}

std::optional<model::MachineChange> memory_change(std::span<const model::Recording> base,
                                                  std::span<const model::Recording> candidate) {
  const auto is = [](std::string_view name) { return name == kMemoryProbe; };
  return change_of({times_of(base, is), times_of(candidate, is)}, kLeastOfMemory);
}

}  // namespace culprit::compare
