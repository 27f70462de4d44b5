// Whether two runs may be compared at all: cycles that begin at different things are different things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::compare {

/// Why two runs must not be compared, and what to do about it.
struct Refusal {
  std::string reason;  ///< one sentence that names both sides
  std::string remedy;
};

/// Why cycles of `base` and `candidate` must not be compared; nullopt when they may.
/// They must be found by the same method, begin at the same anchor (names that differ only in digits are the same), and
/// have a phase in common.
std::optional<Refusal> why_not_comparable(const model::Cycles& base, const model::Cycles& candidate);

/// Phases that whole cycles of both runs have, in the order of model::Phase.
std::vector<model::Phase> common_phases(const model::Cycles& base, const model::Cycles& candidate);

/// What differs without making the comparison wrong: shares of the phases, low confidence.
std::vector<std::string> comparison_notes(const model::Cycles& base, const model::Cycles& candidate);

/// Which processes of two runs belong together: those of one rank in the order of the time that they take. Gives each
/// row of Profile::processes of both runs a number; the same number on both sides is the same role.
struct Roles {
  std::vector<std::int64_t> base;
  std::vector<std::int64_t> candidate;
};
Roles match_roles(const model::Profile& base, const model::Profile& candidate);

/// Adds the cycles of another recording of the same run to `run`; its processes take the roles of those of `run`.
void append_replicate(model::Profile& run, const model::Profile& replicate);

}  // namespace culprit::compare
