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

/// What it is called that this side is slower than the other.
inline model::Outcome slower_by(std::size_t side) {
  return side == 1 ? model::Outcome::regression : model::Outcome::improvement;
}

/// Of one side against the other: by programs beside it, or a quota. Programs took many CPUs more, or a step waited
/// longer, by a tenth of it (`least`, where that is more), for one that they had.
bool was_held_back(const model::HostChanges& host, std::size_t side, double least = 0);

/// Whether requests waited longer for each of their tokens on that side: then a longer time until the next step is not
/// for want of requests.
bool answered_later(const model::HostChanges& host, std::size_t side);

/// Whether requests of that side wait longer for their tokens though fewer are answered per second: steps that work for
/// more of them at once do so because all take longer, and not because more were asked.
bool waits_together(const model::HostChanges& host, std::size_t side);

/// Of a side that was answered later, whose period was judged: a sentence where that is shown to be longer. Empty where
/// half of the steps work on something else, and more of it, unless they generate for more requests at once while fewer
/// are answered, or where a phase is shown to be the other way round.
std::string why_later(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                      std::size_t side);

/// Of a side that was held back, whose period (time until the next step) was judged with that known: a sentence where
/// its steps take longer. Either their period is shown to, or they waited longer for a CPU than those of recordings of
/// the same do (surely_longer), typical ones too, and not only a few that were held up, unless half of the steps work
/// on something else, and more of it; or it did far fewer of them in most half seconds than the other side in hardly
/// any. Empty where none of it is so, or where a phase is shown to be the other way round.
std::string why_slower(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                       const std::array<const model::HostEvidence*, 2>& evidence, std::size_t side);

/// Of steps that one side is shown to take longer for: a sentence where the time until the next one is, by a twentieth
/// at least, the other way round, over the phases with enough like steps; by half where none has enough. Then what lies
/// between the steps became slower, or there was less to do, and what the steps took does not say which side is the
/// slower one. Else empty.
std::string why_undecided(model::Outcome outcome, const std::vector<model::CycleTimeOutcome>& periods);

}  // namespace culprit::compare
