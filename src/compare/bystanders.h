// Processes beside the recorded ones: what counts as taking more of the CPUs is said once.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::compare {

inline constexpr std::string_view kThrottledTime = "cgroup.cpu.throttled_time";  ///< a counter of recordings

/// Name and mean CPUs of baseline and candidate of those that differ by 0.1 CPUs and by half of the smaller one, which
/// normal recordings do not. Largest difference first.
std::vector<std::pair<std::string, std::array<double, 2>>> bystanders_that_moved(
    const std::map<std::string, double>& base, const std::map<std::string, double>& candidate);

/// Whether others kept a side from its CPUs more than the other side: programs beside it took half a CPU more, or a
/// quota throttled it for a tenth of the time more.
bool was_held_back(double more_cpus, double more_throttled_ns_per_s);

}  // namespace culprit::compare
