// The programs that the simulated machine runs: a server that prefills and decodes, a training step.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracegen/machine.h"
#include "tracegen/options.h"

namespace culprit::tracegen {

/// What one step has to do.
struct StepPlan {
  std::uint64_t number = 0;
  std::string_view phase;  ///< "prefill", "decode" or "train"
  std::int64_t batch = 0;
  std::int64_t tokens = 0;   ///< computed in this step
  std::int64_t context = 0;  ///< mean length of the sequences that decode steps attend to
};

/// Plans one step after the other: the batch and context of a server wander as requests come and go.
class Planner {
 public:
  explicit Planner(const Options& options);
  StepPlan next();

 private:
  Options options_;
  Random random_;
  std::uint64_t number_ = 0;
  std::int64_t batch_;
  std::int64_t context_ = 512;
};

void run_step(Machine& machine, const Options& options, const StepPlan& plan);

}  // namespace culprit::tracegen
