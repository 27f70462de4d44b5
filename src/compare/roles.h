// Which processes of two runs belong together, and recordings of one run as one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// Processes of both sides by role: those of one rank in the order of who launches GPU work (by pid: processes of one
/// job differ little in time) before the others in the order of the time that they take.
struct Roles {
  std::vector<model::ProcessPair> pairs;              ///< by rank, then place
  std::array<std::vector<std::uint32_t>, 2> of_side;  ///< row of `pairs` by row of Profile::processes of each side
};
Roles match_roles(const model::Profile& base, const model::Profile& candidate);

/// Adds the cycles of another recording of the same run to `run`; its processes take the roles of those of `run`.
void append_replicate(model::Profile& run, const model::Profile& replicate);

}  // namespace culprit::compare
