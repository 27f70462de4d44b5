// Draws one side of a comparison: what a page shows beside the numbers. Bounded, however long the run: 4,000 cycles, 40
// series of 400 points, 100 findings of 100 points, 20,000 slices on 60 lanes.
#pragma once

#include <cstdint>
#include <span>

#include "model/comparison.h"
#include "model/recording.h"
#include "model/run_picture.h"
#include "trace/trace.h"

namespace culprit::summary {

/// The phase that both have most whole cycles of.
model::Phase usual_phase(const model::Cycles& a, const model::Cycles& b);

/// `recording` was made of `trace`; the cycle that is shown is one of `phase`. All functions and series are in it: 1 kB
/// for each function. Time linear in slices, uses and samples. `steps`: ascending by begin. `rank`: number of the one
/// whose cycle is shown, where it has whole ones; -1: any.
model::RunPicture run_picture(const Trace& trace, const model::Recording& recording, model::Phase phase,
                              std::span<const model::PictureStep> steps = {}, std::int32_t rank = -1);

/// Keeps what belongs to the findings and the largest part of what moved; `side` is 0 for the baseline.
void keep_what_matters(model::RunPicture& picture, const model::RunComparison& comparison, std::size_t side);

}  // namespace culprit::summary
