// The reference's comparison: one row per (function, metric, device) with its statistics and the Suspicion Score.
//
// It works on the numbers that the profile table shows (percent, 100 x MHz and so on), because score and order depend
// on their scale. It decides nothing about causes; it exists so that published comparisons can be reproduced.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "compare/pairing.h"
#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// Compares two processes. Both profiles must carry reported numbers (Profile::reported). Per group: mean and sample
/// standard deviation over rows (missing mu counts as 0, a missing group or spread as 0), Welch's t with n = distinct
/// cycles, Mann-Whitney over rows; score = |d beta| (|z beta| + |z log mu|) with z by the baseline's spread.
/// `identifier` and `base_name` are kept for whoever shows the result.
model::Comparison compare_by_suspicion(const model::Profile& base, const model::Profile& candidate,
                                       const ProcessPair& processes, std::string identifier, std::string base_name);

/// The first (function, device) pairs whose score is above the threshold, at most three, each with the resources that
/// moved. Rows whose mark says that only the cycle changed are passed over.
void choose_findings(model::Comparison& comparison);

}  // namespace culprit::compare
