// The collectives of two runs, rank by rank.
#pragma once

#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Adds those of one more recording of a side.
void add_collectives(const std::vector<model::RankCollectives>& recording, std::vector<model::RankCollectives>& side);

/// Per cycle, of ranks that both sides have.
std::vector<model::CollectiveChange> collective_changes(const std::vector<model::RankCollectives>& base,
                                                        const std::vector<model::RankCollectives>& candidate);

}  // namespace culprit::compare
