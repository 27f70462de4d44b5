// What the page of `culprit ab` draws beside the numbers.
#pragma once

#include <array>

#include "ab/alternate.h"
#include "core/error.h"
#include "model/comparison.h"
#include "model/run_picture.h"

namespace culprit::cli {

/// Of the first recording of each side, which is there yet, as `culprit diff` draws it: only steps that lie wholly in a
/// turn are drawn. Nothing where a side was not recorded. `kept`: the files stay, and are named. Error: a recording
/// cannot be read.
Result<std::array<model::RunPicture, 2>> pictures_of(const ab::Alternated& alternated,
                                                     const model::RunComparison& comparison, bool kept);

}  // namespace culprit::cli
