// Whether cycles of two runs may be compared: those that begin at different things are different things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cycles.h"
#include "model/host_evidence.h"

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

/// True when the two runs have a phase in common only after the phases that were guessed from names of kernels are
/// dropped on both sides (forget_guessed_phases).
bool needs_forgetting(const model::Cycles& base, const model::Cycles& candidate);

/// Sets guessed phases of model::Cycle or model::ProfileCycle to Phase::other.
template <class Cycle>
void forget_guessed_phases(std::vector<Cycle>& cycles) {
  for (Cycle& cycle : cycles)
    if (cycle.phase_guessed) cycle.phase = model::Phase::other;
}

/// Where one run tells of most of its steps what they worked on, and the other, whose steps begin at the same place, of
/// none (a function around that of the steps hides its arguments): a sentence that says so. Nothing but all steps of
/// either can be compared then (forget_work).
std::optional<std::string> work_told_by_one(const model::Cycles& base, const model::Cycles& candidate);

/// Sets phase and workload of model::Cycle or model::ProfileCycle to what is said of steps of which nothing is known.
template <class Cycle>
void forget_work(std::vector<Cycle>& cycles) {
  for (Cycle& cycle : cycles) {
    cycle.phase = model::Phase::other;
    cycle.workload = {};
  }
}

/// What threads did in steps of whatever phase becomes what they did in those of Phase::other.
void forget_phases(model::HostEvidence& host);

/// A sentence when the shares of the phases differ by more than a tenth.
std::optional<std::string> other_mix_of_phases(const model::Cycles& base, const model::Cycles& candidate);

}  // namespace culprit::compare
