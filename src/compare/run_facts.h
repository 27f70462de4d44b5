// What must be equal for two runs to be compared at all, beside their cycles: other hardware or another number of ranks
// is other work, however alike the names of the functions are.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::compare {

/// Facts of one side. Empty and -1: the recording does not say.
struct RunFacts {
  std::set<std::string> device_models;  ///< of the devices that worked
  std::int64_t world_size = -1;
  std::set<std::int64_t> ranks;  ///< numbers of the ranks that were recorded
  bool gpu_work = false;         ///< kernels, copies or sets were recorded
};

/// One fact that differs. `blocks`: the runs must not be compared.
struct Difference {
  std::string what;  ///< "device model"
  std::string base;
  std::string candidate;
  bool blocks = false;
};

/// Facts that both sides know and that differ, those that block first. GPU work on one side only, other device models
/// and another world size block; other ranks of the same world do not.
std::vector<Difference> differences_of(const RunFacts& base, const RunFacts& candidate);

/// "device model A100 against V100; world size 8 against 2".
std::string to_string(const std::vector<Difference>& differences);

/// When the two runs have no phase in common and phases were guessed from names of kernels, the guesses are dropped on
/// both sides (to Phase::other). True when that made a phase common; else nothing is changed.
bool forget_guessed_phases(model::Cycles& base, model::Cycles& candidate, model::Profile& base_profile,
                           model::Profile& candidate_profile);

}  // namespace culprit::compare
