// A side that does no step, or one without an end, has no whole cycles, and runs without are not compared; of a few
// nothing follows. But where the thread that runs them could not run, that is the answer: nothing was done, and what
// held it tells why.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// One side has no whole cycle, or few, those of the other begin at markers, and the thread that runs them there could
/// not run on the first for four fifths of all its recordings, nor was on a CPU for a tenth of as many steps. Or it has
/// some, and all recordings of that side, none of the other, end so (held, in profile::long_end). nullopt: it is not
/// so, or not known, or the sides must not be compared; an idle program waits, and could run.
std::optional<model::Standstill> standstill_of(std::span<const model::Recording> base,
                                               std::span<const model::Recording> candidate,
                                               const model::Comparability& comparability);

/// Where some recordings of a side do steps and all others none, as the thread that runs them could not run, those that
/// are fewer are taken out, and of as many those that do none: they are no recordings of like things. A sentence of
/// each such side.
std::vector<std::string> set_aside(std::vector<model::Recording>& base, std::vector<model::Recording>& candidate);

/// A side whose recordings all end in a step that does not, or without one for long while the thread that runs them
/// waits for something that is not work; those of the other go on. It hangs, or it is a long one: the steps before it
/// do not tell that all is well.
std::optional<model::StuckSide> stuck_side(std::span<const model::Recording> base,
                                           std::span<const model::Recording> candidate);

/// A side that is deadlocked from the begin of its recordings, as far as is known, when the other is not.
std::optional<model::DeadlockedSide> deadlocked_side(std::span<const model::Recording> base,
                                                     std::span<const model::Recording> candidate);

/// What is seen of a side that hangs, in a sentence.
std::string stuck_text(const model::StuckSide& stuck);

/// Neither has a whole cycle, and a thread that could not run is on both.
bool stand_alike(const model::Recording& one, const model::Recording& other);

/// What it is, in a sentence.
std::string standstill_text(const model::Standstill& standstill);

}  // namespace culprit::compare
