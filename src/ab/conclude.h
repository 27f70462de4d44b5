// From alternated sides to a comparison as `culprit diff` gives it: the pairs say whether and how much, the recordings
// where.
#pragma once

#include "ab/alternate.h"
#include "core/error.h"
#include "model/comparison.h"

namespace culprit::ab {

/// Compares the recordings, of runs at most kMostRuns a side, spread over all of them. Its outcome is that of the
/// pairs. Recordings that cannot be read or compared make a note. `kept`: the files stay, and are named.
model::RunComparison conclude(const Alternated& alternated, bool kept);
inline constexpr std::size_t kMostRuns = 8;

}  // namespace culprit::ab
