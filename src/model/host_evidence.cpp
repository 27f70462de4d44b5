#include "model/host_evidence.h"

#include <algorithm>
#include <array>

namespace culprit::model {

bool is_limit_of_group(std::string_view counter) {
  constexpr std::array<std::string_view, 6> kLimits = {"cgroup.cpu.quota",          "cgroup.cpu.throttled_periods",
                                                       "cgroup.cpu.throttled_time", "cgroup.memory.limit",
                                                       "cgroup.memory.limit_hits",  "cgroup.memory.oom_kills"};
  return counter == "cgroup.cpuset.cpus" || std::ranges::find(kLimits, counter) != kLimits.end();
}

}  // namespace culprit::model
