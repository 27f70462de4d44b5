// Which rank of one run is which of the other, and which recording of a side comes first: neither may depend on the
// order in which files were named.
#pragma once

#include <vector>

#include "model/recording.h"

namespace culprit::compare {

/// The recordings of a side by the time of their first cycle, then by their files.
void put_in_order(std::vector<model::Recording>& side);

/// Ranks of one number are the same on both sides. A recording that has none in common with the first of the baseline
/// (one of another rank, or one that tells no numbers) takes its numbers instead, in their order; what it tells of
/// itself (RunFacts) stays.
void align_ranks(std::vector<model::Recording>& base, std::vector<model::Recording>& candidate);

}  // namespace culprit::compare
