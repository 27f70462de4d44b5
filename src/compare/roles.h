// Which processes of two runs belong together, and recordings of one run as one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// Processes of both sides by role: in one rank those that ran the most alike functions belong together, of those that
/// are as alike the same process (pid), then those of the same place: who launches GPU work (by pid: processes of one
/// job differ little in time) before the others in the order of the time that they take. Of more than 32 processes of a
/// rank only the place counts.
struct Roles {
  std::vector<model::ProcessPair> pairs;              ///< by rank, then place
  std::array<std::vector<std::uint32_t>, 2> of_side;  ///< row of `pairs` by row of Profile::processes of each side
};
Roles match_roles(const model::Profile& base, const model::Profile& candidate);

/// Adds the cycles of another recording of the same run to `run`; its processes take the roles of those of `run`.
void append_replicate(model::Profile& run, const model::Profile& replicate);

}  // namespace culprit::compare
