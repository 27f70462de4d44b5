// What the operating system saw of the recorded processes while their cycles ran: sums of thread states per phase,
// means of counters.
#pragma once

#include "model/cycles.h"
#include "model/host_evidence.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::profile {

/// Measures all threads with scheduling inside the whole cycles (model::whole_periods) of their process; threads of
/// processes without cycles are measured in those of the process with the most. What a thread is blocked in counts only
/// where it does not last through a whole cycle. Counters of no device: mean over the samples between
/// the begin of the first and the end of the last whole cycle. O(slices log cycles). Empty without whole cycles.
model::HostEvidence host_evidence(const Trace& trace, const model::Cycles& cycles);

/// The same for a recording without cycles, scaled to one cycle of a second in Phase::other.
model::HostEvidence host_evidence_per_second(const Trace& trace);

/// Sets HostCounter::windows: the mean of each counter in each window. Windows in which it has no value are left out.
void add_windows(const Trace& trace, const std::vector<model::WorkWindow>& windows, model::HostEvidence& evidence);

/// Sets HostEvidence::stretches, of a recording with units of work instead of steps: its windows, by the first unit.
void add_stretches(const Trace& trace, const model::WorkUnits& work, model::HostEvidence& evidence);

}  // namespace culprit::profile
