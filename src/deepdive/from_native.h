// Traces under the reference's score: the cycles of one phase as a table that it can work on.
#pragma once

#include <cstdint>
#include <vector>

#include "deepdive/profile.h"
#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::deepdive {

/// Host functions that only enclose others (annotations) are left out, every function has its mean time per call as a
/// resource ("time_per_call_us"), and processes are numbered by `pids` (one per row of Profile::processes).
Profile for_suspicion(const model::Profile& profile, model::Phase phase, const std::vector<std::int64_t>& pids);

}  // namespace culprit::deepdive
