// What the operating system saw of two recordings, side by side.
#pragma once

#include <string_view>

#include "model/host_evidence.h"

namespace culprit::compare {

/// A state is listed when it differs by at least this share of the baseline's period.
inline constexpr double kLeastStateShare = 0.005;
/// A counter is listed when its mean moved by at least this share of the larger side.
inline constexpr double kLeastCounterShare = 0.1;

/// Of a step, or a unit of work.
inline constexpr std::string_view kOnCpuOfStep = "on CPU";
inline constexpr std::string_view kInRunQueue = "runnable, in the run queue";

/// Adds another recording of the same run: totals and cycles add, means of counters weigh by samples.
void add_replicate(model::HostEvidence& side, const model::HostEvidence& other);

/// States per step: of each phase that both sides have, total / cycles, weighted by the baseline's cycles, so that
/// another mix of phases is no change. Without a common phase there are no states.
model::HostChanges host_changes(const model::HostEvidence& base, const model::HostEvidence& candidate);

/// Of two recordings of which one has no steps: who else took CPUs, and counters of the group's CPUs that moved.
/// Whoever gets no CPU makes no steps.
model::HostChanges surroundings_of(const model::HostEvidence& base, const model::HostEvidence& candidate);

/// What tells how near a group is to its limit hardly moves where it is at it.
inline bool is_of_group_memory(std::string_view name) { return name.starts_with("cgroup.memory."); }

}  // namespace culprit::compare
