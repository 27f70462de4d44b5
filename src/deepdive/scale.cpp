#include "deepdive/scale.h"

namespace culprit::deepdive {

namespace {

using model::Unit;

// Below it a value is percent of a maximum; the smallest clock anyone runs, 10 MHz, is written as 1000, the smallest
// memory in use is far above.
constexpr double kLargestPercent = 1000;

constexpr Scale kPercent{Unit::fraction, 1, 100};
constexpr Scale kFraction{Unit::fraction, 1, 1};
constexpr Scale kMegahertzTimes100{Unit::hertz, 1e4, 1};
constexpr Scale kBytesTimes100{Unit::bytes, 1, 100};
constexpr Scale kRateTimes100{Unit::bytes_per_second, 1, 100};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

Scale profile_scale(std::string_view metric, double reported_mu) {
  const bool percent = !(reported_mu >= kLargestPercent);
  if (metric == "cpu_frequency") return percent ? kPercent : kMegahertzTimes100;
  if (metric == "gpu_mem_used") return percent ? kPercent : kBytesTimes100;
  if (metric == "gpu_frequency" || metric == "gpu_sm_frequency" || metric == "gpu_mem_frequency")
    return kMegahertzTimes100;
  if (metric == "gpu_sm_util" || metric == "gpu_sm_occupancy") return kFraction;
  if (metric.starts_with("gpu_link_") || metric.starts_with("gpu_pcie_")) return kRateTimes100;
  if (metric.starts_with("net_") && metric.ends_with("_rate")) return {Unit::bytes_per_second, 1, 1};
  if (metric == "process_mem_rss") return kBytesTimes100;
  if (metric == "cpu_temp") return {Unit::celsius, 1, 100};
  if (metric == "cpu_power") return {Unit::watt, 1, 100};
  if (contains(metric, "usage")) return kPercent;
  if (contains(metric, "rate") || contains(metric, "util") || contains(metric, "occupancy")) return {};
  return {Unit::plain, 1, 100};
}

}  // namespace culprit::deepdive
