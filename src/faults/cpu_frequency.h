// What the fault cpu-frequency is going to write, apart from writing it: machines without cpufreq can test this much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace culprit::faults {

struct ClockLimit {
  std::string file;  ///< scaling_max_freq of one policy
  std::int64_t before_khz = 0;
  std::int64_t wanted_khz = 0;  ///< never above what it was
};

/// The limits of all policies in a cpufreq folder, lowered by `severity` of the way to the lowest clock; by name.
std::vector<ClockLimit> clock_limits(const std::string& folder, double severity);

}  // namespace culprit::faults
