// Who came late to the collectives of a run, and who waited: the only honest reading of a long collective. A rank that
// waits in one for another takes as long as the link does that is slow; all ranks leave together, and only the one that
// came last did not wait.
//
// Which calls belong together: the k-th of a communicator (of a name, where the trace does not tell communicators) in
// the cycle of one number, on all ranks that have as many of them. Clocks of ranks differ: the middle difference of the
// ends, which are equal, is taken off; of ranks that share few calls or none by way of those with which they share
// more. What does not end together then was no collective of these ranks and does not count: communicators of one name
// may be several.
#pragma once

#include <vector>

#include "cycles/find.h"
#include "model/recording.h"
#include "trace/trace.h"

namespace culprit::profile {

/// One entry for each rank with collectives that others shared, over the whole cycles; empty where there are none.
/// O(n log n) of the collectives.
std::vector<model::RankCollectives> collectives_of(const Trace& trace, const cycles::Found& found);

}  // namespace culprit::profile
