// The causes of a difference as sentences.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.h"

namespace culprit::report {

struct VerdictText {
  std::string head;                ///< "Cause: cpu_contention (throttled), 83 % of what a step takes longer"
  std::vector<std::string> lines;  ///< evidence, what speaks against it, what to do next
};

/// Its evidence, and what to do; with a head that says neither of which side nor of how much.
VerdictText verdict_text(const model::Verdict& verdict);

/// In their order; `sides` is what the two are called.
std::vector<VerdictText> verdict_texts(const model::RunComparison& comparison,
                                       const std::array<std::string_view, 2>& sides = {"baseline", "candidate"});

}  // namespace culprit::report
