// When a trace was taken: what a rate is divided by. The events alone do not say: a recorded program may do nothing for
// a while.
#pragma once

#include <string_view>

#include "core/intervals.h"
#include "trace/trace.h"

namespace culprit {

/// From the first event to the last, of whatever kind; of a recording as long as it says that it was. Empty without
/// events.
Interval recorded_span(const Trace& trace);

/// A recording's fact, of the first file that has it; empty: none has.
std::string_view fact_of(const Trace& trace, std::string_view key);
/// Whether the recorder saw every switch: without any slice of scheduling nothing ran.
bool records_scheduling(const Trace& trace);

}  // namespace culprit
