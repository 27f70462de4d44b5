// What decides where the times that steps themselves took do not: the time until the next one, where it is known to be
// no matter of demand, and waits for CPUs that others took.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "model/comparison.h"
#include "model/host_evidence.h"

namespace culprit::compare {

/// Of one side against the other: by programs beside it, or a quota.
bool was_held_back(const model::HostChanges& host, std::size_t side);

/// Whether requests waited longer for each of their tokens on that side: then a longer time until the next step is not
/// for want of requests.
bool answered_later(const model::HostChanges& host, std::size_t side);

/// Of a side that was answered later, whose period was judged: a sentence where that is shown to be longer. Empty where
/// half of the steps work on something else, or where a phase is shown to be the other way round.
std::string why_later(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                      std::size_t side);

/// Of a side that was held back, whose period (time until the next step) was judged with that known: a sentence where
/// its steps take longer. Either their period is shown to, or they waited longer for a CPU than those of recordings of
/// the same do (surely_longer), typical ones too, and not only a few that were held up, while less than half of the
/// steps work on something else. Empty where neither is so, or where a phase is shown to be the other way round.
std::string why_slower(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                       const std::array<const model::HostEvidence*, 2>& evidence, std::size_t side);

}  // namespace culprit::compare
