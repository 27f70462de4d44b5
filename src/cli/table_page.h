// Two profile tables as a page of HTML: what a comparison of traces shows, as far as tables tell it, and the ranking of
// the reference.
#pragma once

#include <array>
#include <string>

#include "core/error.h"
#include "deepdive/comparison.h"
#include "deepdive/pairing.h"
#include "deepdive/profile.h"
#include "model/comparison.h"
#include "model/run_picture.h"

namespace culprit::cli {

/// Cycles of each side, and its first findings over them: 4,000 cycles, 100 findings of 100 points. Time linear in
/// rows.
std::array<model::RunPicture, 2> pictures_of_tables(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                                    const deepdive::ProcessPair& processes,
                                                    const model::RunComparison& compared);

/// Errors: this program was built without the page.
Result<std::string> table_page(const deepdive::Comparison& comparison, const deepdive::ComparisonSet& set,
                               const model::RunComparison& compared, const std::array<model::RunPicture, 2>& pictures);

}  // namespace culprit::cli
