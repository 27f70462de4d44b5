// Launches in a row that one kernel could do instead, and what that saves at most.
//
// A run is a maximal row of launches of one lane that work element by element, reduce, normalise, copy, gather or cast,
// with the compute axis below the threshold, at most 32 of them (optimizers: any number), and without a pause of more
// than a millisecond. Runs with the same names in the same order are one candidate.
//
// The bound and its assumptions, per run with times t_i, DRAM use u_i, and b = the best DRAM use of any launch of at
// least 10 us in the log:
//   traffic once     an ideal fusion moves what the launch with the most traffic moves, and nothing twice:
//                    remaining >= max(u_i t_i) / b; a kernel that is one operation already (softmax, norm) keeps its
//                    own time; nothing is shorter than the shortest launch of the log.
//   longest remains  DRAM use unknown: remaining = max(t_i). No bound in the strict sense; said so.
//   pass remains     optimizers apply one operation to chunks of all parameters, then the next: only launches over the
//                    same chunk can be fused. The number of chunks is the one whose times fit best; per chunk as above.
//   removed          changes of layout around convolutions: none with one layout throughout.
// Gaps inside a run (only those of at most 20 us: longer ones are not the price of a launch) are saved on top.
// `careful` is the same with the longest launch as what remains: what can be expected, where the bound is what is
// possible.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

struct FusionOptions {
  double low = 0.33;  ///< compute use from which a launch is not fusable
};

model::FusionReport fusion_report(const model::KernelLog& log, std::span<const model::Lane> lanes,
                                  const FusionOptions& options);

/// Launches that go over the same chunks in turn, found from their times: how many chunks (at least 1).
std::size_t chunks_of(std::span<const double> times);

/// One sentence that states the model behind a bound.
std::string_view describe(model::FusionModel model);

}  // namespace culprit::kernels
