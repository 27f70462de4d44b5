// Whether the machine itself was slower or faster: fixed work that the recorder timed beside the program.
#pragma once

#include <optional>
#include <span>

#include "model/host_evidence.h"
#include "model/recording.h"

namespace culprit::compare {

/// Relative change of the time that host.speed.branches takes (of the probes the one that tells the step times of real
/// programs best: docs/accuracy.md) when its 95 % interval leaves out 0 and it is kLeastOfMachine or more. CPUs need
/// not be alike: where it is known on which one each was measured, each is held against itself, and those of one side
/// alone tell nothing. Evidence only: it explains half of what moves step times at most, and corrects nothing.
std::optional<model::MachineChange> machine_change(std::span<const model::Recording> base,
                                                   std::span<const model::Recording> candidate);
inline constexpr double kLeastOfMachine = 0.05;

}  // namespace culprit::compare
