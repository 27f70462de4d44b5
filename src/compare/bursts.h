// Whoever comes and goes moves no mean surely: what tells of it is that steps are slow just while it is there.
#pragma once

#include <optional>

#include "model/host_evidence.h"

namespace culprit::compare {

/// Others who had CPUs for a part of the time on one side, more than they ever had on the other, and whether steps took
/// longer just then: surely, by the Mann-Whitney test over stretches of the recording, and by a tenth. The candidate is
/// looked at first. nullopt: nobody came and went, or steps do not tell.
std::optional<model::Bursts> bursts_of(const model::HostEvidence& base, const model::HostEvidence& candidate);

}  // namespace culprit::compare
