// The time of a slice that no slice inside it accounts for.
#pragma once

#include <vector>

#include "trace/trace.h"

namespace culprit::summary {

/// Self time of every slice, by row: its duration minus the union of the slices directly inside it on the same thread.
/// Containment is by time; a slice that outlasts the one it began in takes only the common part from it. GPU work does
/// not nest: its self time is its duration. 8 bytes per slice, and the sums over a thread of properly nested slices
/// equal the time in which at least one of them ran.
std::vector<Ns> self_times(const Trace& trace);

}  // namespace culprit::summary
