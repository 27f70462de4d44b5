// How long turns of two sides should be. Shorter ones see machines that are more alike, longer ones lose less to
// switches: which of both matters more the memory of the noise tells.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ab/recorded_steps.h"
#include "core/units.h"

namespace culprit::ab {

/// How long steps of both sides are, in ns, until the next begins; 0: there are none.
double mean_step_of(const std::array<std::vector<Step>, 2>& steps);

/// How long turns should be for steps of this mean length: so long that settling and the steps that span a switch take
/// about a sixth of them. kUsualLength for 0: no steps were seen.
Ns length_for(double mean_step);
inline constexpr Ns kUsualLength = 500'000'000;

/// How long they should be by the noise of steps that ran without turns, between `shortest` and `longest`. The squared
/// error of the mean after a given time goes with variance * length / (1 - loss), where the variance is that of the
/// difference between neighbouring stretches of that length, on each side, of the mean logarithm of what is compared
/// (of like work, in the phase in which most time is spent), and the loss what settling and the step at a switch take
/// of a turn. One longer than `shortest` is taken where that becomes less than half: the variance of a few stretches
/// may be wrong by as much, and short turns tell earlier. nullopt: too few steps were seen for a second length.
std::optional<Ns> length_by_memory(const std::array<std::vector<Step>, 2>& steps, Ns shortest, Ns longest);

}  // namespace culprit::ab
