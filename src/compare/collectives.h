// The collectives of two runs, rank by rank, in steps of like work: who moves more bytes through a link needs more time
// for it.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "compare/workload.h"
#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// What steps are alike in.
struct StepKind {
  model::Phase phase = model::Phase::other;
  bool guessed = false;  ///< the phase is
  WorkClass work;
  auto operator<=>(const StepKind&) const = default;
};

/// One rank in the collectives of steps of one kind: sums, as in model::StepCollectives.
struct CollectiveSums {
  double cycles = 0;
  double calls = 0;
  double elements = 0;
  double wait_ns = 0;
  double transfer_ns = 0;
  double held_up_ns = 0;
};

/// Of the ranks of a side, by number.
using CollectivesOfSide = std::map<std::int32_t, std::map<StepKind, CollectiveSums>>;

/// Adds those of one more recording of a side.
void add_collectives(const model::Recording& recording, CollectivesOfSide& side);

/// Per cycle, of ranks that both sides have. Who waited for whom counts in all steps: that is between the ranks of one
/// side. Calls, elements and transfers count in the kinds of steps of which each side has kFewestAlike (of fewer steps
/// in all: any); kinds weigh as the mean of their shares on the two sides. Without such steps these are 0.
/// `forget_guessed`: phases that were guessed are not told apart.
std::vector<model::CollectiveChange> collective_changes(const CollectivesOfSide& base,
                                                        const CollectivesOfSide& candidate, bool forget_guessed);

}  // namespace culprit::compare
