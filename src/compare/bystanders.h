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

/// Ns of a step, or of a unit of work.
struct Waited {
  double all = 0;
  double for_cpu = 0;
};

/// By what share of the other side's step one of the side that others held back is surely longer, because it waited for
/// a CPU: only what is beyond three times the other side's wait and a twentieth of its step, by which recordings of the
/// same were not seen to differ (docs/diff.md), and no more than it is longer in all: what it waited for before may
/// have been ready by then. Less than a tenth counts as 0.
double surely_longer(const Waited& held_back, const Waited& other);

}  // namespace culprit::compare
