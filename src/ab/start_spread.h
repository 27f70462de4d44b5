// By how much starts of the same program differ in what is compared: what is assumed of each quantity, and from where
// that is known.
#pragma once

#include "ab/alternate.h"
#include "ab/paired.h"
#include "model/alternation.h"

namespace culprit::ab {

/// Measured on equal servers (docs/ab.md): of the time of a step.
inline constexpr StartSpread kServerStarts{0.025, 10};
/// Calls, and bytes of copies and fills, were the same in three processes (docs/ab.md).
inline constexpr StartSpread kSameCounts{0, 3};

/// Of counts that are the same in all pairs of this run kSameCounts, of all else kServerStarts.
Assumed assumed_of(const Quantity& quantity);

/// What a look took into its interval, and from where that is known. `of_steps`: values are of steps, not of turns.
model::BetweenStarts between_starts(const Between& between, const Quantity& quantity, bool of_steps);

}  // namespace culprit::ab
