#include "model/host_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/units.h"

namespace culprit::model {

bool is_limit_of_group(std::string_view counter) {
  constexpr std::array<std::string_view, 6> kLimits = {"cgroup.cpu.quota",          "cgroup.cpu.throttled_periods",
                                                       "cgroup.cpu.throttled_time", "cgroup.memory.limit",
                                                       "cgroup.memory.limit_hits",  "cgroup.memory.oom_kills"};
  return counter == "cgroup.cpuset.cpus" || std::ranges::find(kLimits, counter) != kLimits.end();
}

std::string stuck_text(const LongEnd& end, std::string_view whose) {
  const std::string time = format_duration(end.thread.recorded);
  const std::string what = end.in_step
                               ? fmt::format("a step that began {} before the end of the {} has not ended", time, whose)
                               : fmt::format("no step began in the last {} of the {}", time, whose);
  const std::string where = end.waits_in.empty()
                                ? fmt::format("on a CPU for {} of that", format_duration(end.thread.on_cpu))
                                : fmt::format("blocked in {}", end.waits_in);
  return fmt::format("{}: {}, which runs them, was {}", what, end.thread.name, where);
}

}  // namespace culprit::model
