// Where a device waits for launches: gaps between kernels by size, stretches in which it waits longer than it works,
// and kernels shorter than what launching one costs the host. Gaps need begins; a text log has none.
#pragma once

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

struct LaunchOptions {
  Ns launch_cost = 5'000;  ///< what one launch costs the host
};

/// Gaps are those of a device: time in which none of its streams runs a kernel.
model::LaunchReport launch_report(const model::KernelLog& log, const LaunchOptions& options);

}  // namespace culprit::kernels
