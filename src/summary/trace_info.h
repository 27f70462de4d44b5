// Sums up a trace: what is in it, before any question is asked of it.
#pragma once

#include "model/trace_info.h"
#include "trace/trace.h"

namespace culprit::summary {

/// Counts and sums of everything in `trace`. Time linear in slices, apart from sorting GPU spans that are not in order;
/// 16 bytes per GPU slice while it runs.
model::TraceInfo trace_info(const Trace& trace);

}  // namespace culprit::summary
