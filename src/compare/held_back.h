// Whether others held a side back, and what follows where its steps spread too much for their times to decide.
#pragma once

#include <cstddef>
#include <string>

#include "model/comparison.h"

namespace culprit::compare {

/// Of one side against the other: by programs beside it, or a quota.
bool was_held_back(const model::HostChanges& host, std::size_t side);

/// Of a side that was held back: a sentence, where its steps waited longer for a CPU than those of recordings of the
/// same do (surely_longer). Empty where that is not so, or where half of the steps work on something else. Needs
/// `result.host`.
std::string why_surely_slower(const model::RunComparison& result, std::size_t side);

}  // namespace culprit::compare
