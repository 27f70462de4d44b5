#include "compare/kernel_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::compare {

std::string other_kernel_sizes(const model::RunComparison& comparison) {
  constexpr double kMost = 0.6;    // of the kernels' time
  constexpr double kOther = 1.05;  // times the threads
  if (std::ranges::any_of(comparison.cycle_times, [](const model::CycleTimeOutcome& outcome) {
        return !outcome.usual_work[0].empty() || !outcome.usual_work[1].empty();
      }))
    return {};
  double all = 0;
  double other = 0;
  double log = 0;
  for (const model::FunctionFinding& f : comparison.functions) {
    if (comparison.texts[f.kind] != "gpu_compute" || !(f.size[0] > 0) || !(f.size[1] > 0)) continue;
    if (f.was != 0) continue;  // other tiles are other threads for the same work
    const double time = f.time_ns[0] + f.time_ns[1];
    all += time;
    if (std::max(f.size[0], f.size[1]) < kOther * std::min(f.size[0], f.size[1])) continue;
    other += time;
    log += time * std::log(f.size[1] / f.size[0]);
  }
  if (!(other >= kMost * all) || other == 0) return {};
  return fmt::format(
      "kernels that take {:.0f} % of the GPU's time are launched with x{:.2f} the threads: the steps do "
      "other work",
      other / all * 100, std::exp(log / other));
}

}  // namespace culprit::compare
