// All of a recording in a few numbers, whatever its steps are: what can still be held side by side where nobody knows
// them.
#pragma once

#include <cstdint>

namespace culprit::model {

struct WholeRun {
  double wall_ns = 0;    ///< from the first event to the end of the last
  double busy_ns = 0;    ///< of a device: at least one kernel, copy or fill ran; the mean of those that worked
  double kernel_ns = 0;  ///< sum over all
  double kernels = 0;
  double copies = 0;  ///< and fills
  double operators = 0;
  double launches = 0;  ///< calls of the runtime and the driver of devices
};

}  // namespace culprit::model
