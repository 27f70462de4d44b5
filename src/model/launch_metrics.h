// Which metric of Nsight Compute (and of Kineto's profiler ranges, which carry the same names) says what.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/kernel_log.h"

namespace culprit::model {

enum class LaunchField : std::uint8_t {
  none,
  duration,
  sm,
  dram,
  tensor,
  tensor_of_active,  ///< relative to active instead of elapsed cycles: not comparable with the others
  occupancy,
  dram_bytes,
  dram_bytes_part,  ///< read or written; both together are dram_bytes
  scalar_flops,     ///< executed scalar instructions, `weight` operations each
  tensor_flops,
};

struct MetricRole {
  LaunchField role = LaunchField::none;
  int rank = 0;       ///< of several metrics with one role the lowest rank counts
  double weight = 1;  ///< operations per instruction
};

/// By the metric's name, or its title on the details page.
MetricRole metric_role(std::string_view name);

/// Fills the fields of launches from their metrics (SI units).
class LaunchFiller {
 public:
  /// One metric of the current launch.
  void add(MetricRole role, double value);
  /// Writes what is known into `launch` and starts the next one. False when no duration was given.
  bool finish(KernelLaunch& launch);
  /// A launch had tensor use only relative to active cycles.
  [[nodiscard]] bool only_active() const { return only_active_; }

 private:
  struct Best {
    double value = 0;
    int rank = 1 << 20;
    void take(double v, int r) {
      if (r < rank) value = v, rank = r;
    }
    [[nodiscard]] bool known() const { return rank < 1 << 20; }
  };
  Best duration_, sm_, dram_, tensor_, occupancy_, bytes_;
  double bytes_parts_ = 0;
  int bytes_part_count_ = 0;
  double scalar_flops_ = 0;
  int scalar_count_ = 0;
  double tensor_flops_ = 0;
  bool has_tensor_flops_ = false;
  bool active_ = false;
  bool only_active_ = false;
};

}  // namespace culprit::model
