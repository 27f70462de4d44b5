// Levels that are too high or too low in any run: temperatures, a clock, memory, a disk, as they were recorded. One run
// does not tell whether steps are longer by them, so that they are latent, unless its threads waited as long.
#pragma once

#include <vector>

#include "model/recording.h"
#include "model/verdict.h"

namespace culprit::diagnose {

/// Adds a verdict for each limit that was passed for more than half of the time of the steps and in the mean; where
/// `verdicts` name the cause already, it becomes evidence of that.
void limits(const model::Recording& run, std::vector<model::Verdict>& verdicts);

}  // namespace culprit::diagnose
