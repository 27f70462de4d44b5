// The whole recordings of two sides.
#pragma once

#include <array>
#include <span>

#include "model/recording.h"
#include "model/whole_run.h"

namespace culprit::compare {

/// Means of the recordings of each side.
std::array<model::WholeRun, 2> whole_runs(std::span<const model::Recording> base,
                                          std::span<const model::Recording> candidate);

}  // namespace culprit::compare
