// Which recordings may stand together on one side of a comparison.
#pragma once

#include <span>

#include "core/error.h"
#include "model/recording.h"

namespace culprit::compare {

/// An error unless both sides have recordings, every one is there once, and all of a side are of one run: each with one
/// other of the side may be compared, or did no step as that did none.
Status check_sides(std::span<const model::Recording> base, std::span<const model::Recording> candidate);

}  // namespace culprit::compare
