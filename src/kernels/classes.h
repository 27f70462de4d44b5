// What bounds a workload, by the use of compute and of device memory while its kernels run, weighted by their time:
// "both low" (below the threshold on both axes), "low SM", "low DRAM", "neither low". Where SM use was not measured the
// tensor pipe stands in for it, and every report says so: a kernel that keeps the other pipes busy then counts as low.
#pragma once

#include <string_view>

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

struct UseLimits {
  double low = 0.33;
  double high = 0.67;
};

/// Use of the compute axis of a launch: SM, else tensor, else NaN.
double compute_use(const model::KernelLaunch& launch);

/// `unknown` when one of the axes is.
model::UseClass use_class(double compute, double dram, double low);
model::UseClass use_class(const model::KernelLaunch& launch, double low);

/// "both low", "low SM" ("low tensor" when the tensor pipe stands in), "low DRAM", "neither low", "unknown".
std::string_view to_string(model::UseClass use, model::ComputeAxis axis);

/// Classes, bins and histograms (20 bins of 5 %) of a log. Every launch is in exactly one class, so that the times sum
/// to the total.
model::UseReport use_report(const model::KernelLog& log, const UseLimits& limits);

/// What the device can do, estimated from launches that know work, time and use: work / time / use. NaN = no such
/// launch.
struct Roofline {
  double flops_per_second = model::kNoNumber;  ///< highest estimate of launches with compute use of at least 20 %
  double bytes_per_second = model::kNoNumber;  ///< median estimate of launches with DRAM use of at least 20 %
  /// FLOP per byte above which compute is the limit; NaN when one of the two is unknown.
  [[nodiscard]] double ridge() const { return flops_per_second / bytes_per_second; }
};
Roofline roofline(const model::KernelLog& log);

/// "compute" or "memory": the side of the ridge where `flops` and `bytes` lie; "" when one of the three is unknown.
std::string_view roofline_side(double flops, double bytes, const Roofline& roof);

}  // namespace culprit::kernels
