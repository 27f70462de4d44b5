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

/// The same of host.speed.memory, of which single recordings within minutes differ by up to 1.7 times, where it is
/// kLeastOfMemory or more. Who else uses the machine's memory and caches slows it, and all code alike: recordings of
/// one server hours apart were seen to differ by x2.2 while it differed by x2.5 (docs/accuracy.md).
std::optional<model::MachineChange> memory_change(std::span<const model::Recording> base,
                                                  std::span<const model::Recording> candidate);
inline constexpr double kLeastOfMemory = 0.75;

}  // namespace culprit::compare
