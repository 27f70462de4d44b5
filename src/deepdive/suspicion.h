// The reference's comparison: one row per (function, metric, device) with its statistics and the Suspicion Score.
//
// It works on the numbers that the profile table shows (percent, 100 x MHz and so on), because score and order depend
// on their scale. It decides nothing about causes; it exists so that published comparisons can be reproduced.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "deepdive/comparison.h"
#include "deepdive/pairing.h"
#include "deepdive/profile.h"

namespace culprit::deepdive {

/// Compares two processes. Per group: mean and sample standard deviation over rows (missing mu counts as 0, a missing
/// group or spread as 0), Welch's t with n = distinct cycles, Mann-Whitney over rows; score = |d beta| (|z beta| + |z
/// log mu|) with z by the baseline's spread. `identifier` and `base_name` are kept for whoever shows the result.
Comparison compare_by_suspicion(const Profile& base, const Profile& candidate, const ProcessPair& processes,
                                std::string identifier, std::string base_name);

}  // namespace culprit::deepdive
