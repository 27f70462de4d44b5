// Programs and all that they started, to be ended together.
#pragma once

#include <sys/types.h>

#include <vector>

#include "core/units.h"
#include "faults/process.h"

namespace culprit::ab {

/// Those of these processes that live, their descendants, and who else is in these process groups.
std::vector<faults::ProcessId> living(const std::vector<faults::ProcessId>& known,
                                      const std::vector<pid_t>& groups = {});

/// Asks all of them to end, also those that come meanwhile, and kills who still lives after `grace`. Returns when
/// nobody does, or two seconds after the first was killed.
void end_family(std::vector<faults::ProcessId> known, const std::vector<pid_t>& groups, Ns grace);

}  // namespace culprit::ab
