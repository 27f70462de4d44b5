// Steps of like work are compared, whatever else a side works on. But where a side was asked for much else, what it
// does beside those steps, and what they look back at, is other work as well: that they take longer is the load's
// doing.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "model/comparison.h"

namespace culprit::compare {

/// Whether a step of the phase works for more requests on the side or on longer prompts, by a twentieth, or looks back
/// at a fourth more tokens, or nobody knows.
bool has_more_to_do(const model::CycleTimeOutcome& outcome, std::size_t side);

/// Whether decode steps work for more requests at once because all take longer (`together`: waits_together), and not
/// for more clients: then no more wait at once than on the other side. Nor where each looks back at a fourth more
/// tokens or less.
bool waits_for_itself(const model::CycleTimeOutcome& outcome, bool together);

/// Whether more than half of the steps work on something that those of the other side do not, and a side has more to do
/// in them: on a host, where steps share their CPUs with all that is done for them, that the few like ones take longer
/// on that side may be the load's doing. Where nine tenths have no like, the few that do are no sample of either side.
/// Steps that wait for themselves do not count. Where on both sides more than half have their like, how many there
/// are of each does not matter: a slower side gets through fewer requests, and so through other ones.
std::array<bool, 2> may_be_slower_by_load(const std::vector<model::CycleTimeOutcome>& outcomes, bool together);

/// Leaves undecided whether steps that look back at earlier tokens, and do not tell at how many, became slower where
/// prompts are longer on that side. A sentence for each such phase.
std::vector<std::string> leave_open_longer_contexts(std::vector<model::CycleTimeOutcome>& outcomes);

}  // namespace culprit::compare
