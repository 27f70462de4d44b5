// The causes of a difference as sentences.
#pragma once

#include <string>
#include <vector>

#include "model/comparison.h"

namespace culprit::report {

struct VerdictText {
  std::string head;                ///< "Cause: cpu_contention (throttled), 83 % of what a step takes longer"
  std::vector<std::string> lines;  ///< evidence, what speaks against it, what to do next
};

/// In their order.
std::vector<VerdictText> verdict_texts(const model::RunComparison& comparison);

}  // namespace culprit::report
