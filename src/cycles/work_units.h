// Finds the units of work in a recording of a program that marks no steps.
#pragma once

#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::cycles {

/// Looks, in this order, for threads that receive as often as they send (system-call totals), for processes that ran
/// from start to end and took most of the CPU time, for wake-ups of the thread that worked most, else takes windows of
/// equal length. A thread that polls without blocking is counted all the same: its calls are.
///
/// What a unit took is the time in which the recorded threads ran, were runnable, or were blocked inside their work;
/// waits for work (see waits.h) are apart. O(slices), sorted per thread; 8 bytes per wake-up beside the result.
model::WorkUnits find_work_units(const Trace& trace);

}  // namespace culprit::cycles
