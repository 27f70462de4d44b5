// A side that does no step, or one without an end, has no whole cycles, and runs without are not compared. But where the thread
// that runs them could not run, that is the answer: nothing was done, and what held it tells why.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// One side has no whole cycle, those of the other begin at markers, and the thread that runs them there could not run
/// on the first for four fifths of all its recordings, nor was on a CPU for a tenth of as many steps. Or it has some,
/// and all recordings of that side, none of the other, end so (profile::held_at_end). nullopt: it is not so, or not
/// known, or the sides must not be compared; an idle program waits, and could run.
std::optional<model::Standstill> standstill_of(std::span<const model::Recording> base,
                                               std::span<const model::Recording> candidate,
                                               const model::Comparability& comparability);

/// What it is, in a sentence.
std::string standstill_text(const model::Standstill& standstill);

}  // namespace culprit::compare
