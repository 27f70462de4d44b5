#include "compare/held_back.h"

#include <fmt/format.h>

#include <algorithm>

#include "compare/bystanders.h"
#include "compare/host_changes.h"
#include "core/units.h"

namespace culprit::compare {

bool was_held_back(const model::HostChanges& host, std::size_t side) {
  const auto more = [&](const model::HostChange& c) {
    return c.value[side].value_or(0) - c.value[1 - side].value_or(0);
  };
  double cpus = 0;
  for (const model::HostChange& other : host.beside) cpus += more(other);
  double throttled = 0;
  for (const model::HostChange& counter : host.counters)
    if (counter.what == kThrottledTime) throttled = more(counter);
  return compare::was_held_back(cpus, throttled);
}

std::string why_surely_slower(const model::RunComparison& result, std::size_t side) {
  constexpr double kMostOther = 0.5;
  const auto works_on_other = [&](const model::CycleTimeOutcome& o) { return o.other_share > kMostOther; };
  if (std::ranges::any_of(result.cycle_times, works_on_other)) return {};
  const auto waited = [&](std::size_t s) {
    Waited times;
    for (const model::HostChange& part : result.host->step) {
      times.all += part.value[s].value_or(0);
      if (part.what == kInRunQueue) times.for_cpu = part.value[s].value_or(0);
    }
    return times;
  };
  const double longer = surely_longer(waited(side), waited(1 - side));
  if (longer == 0) return {};
  return fmt::format(
      "Each step of the {} waited {} instead of {} for a CPU, by which it is {:.0f} % longer at least; by how much "
      "in all is not decided",
      side == 0 ? "baseline" : "candidate", format_duration(waited(side).for_cpu),
      format_duration(waited(1 - side).for_cpu), longer * 100);
}

}  // namespace culprit::compare
