#include "compare/machine.h"

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "compare/series.h"

namespace culprit::compare {

namespace {

constexpr std::string_view kProbe = "host.speed.branches";

Series times_of(std::span<const model::Recording> recordings) {
  std::vector<double> times;
  for (const model::Recording& recording : recordings)
    for (const model::HostCounter& counter : recording.host.counters)
      if (counter.name == kProbe) times.insert(times.end(), counter.windows.begin(), counter.windows.end());
  const std::vector<CycleValue> logs = logs_of(times);
  return summarise(logs, logs.size());
}

}  // namespace

std::optional<model::MachineChange> machine_change(std::span<const model::Recording> base,
                                                   std::span<const model::Recording> candidate) {
  const std::array sides = {times_of(base), times_of(candidate)};
  if (sides[0].effective < kFewCycles || sides[1].effective < kFewCycles) return std::nullopt;
  const MeanDifference d = difference_of(sides[0], sides[1], 0);
  if (std::abs(d.difference) < std::log1p(kLeastOfMachine) || std::abs(d.difference) <= d.half) return std::nullopt;
  return model::MachineChange{std::expm1(d.difference), std::expm1(d.difference - d.half),
                              std::expm1(d.difference + d.half)};
}

}  // namespace culprit::compare
