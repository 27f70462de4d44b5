// Perfetto traces (protobuf): our own recordings and other people's.
//
// Read are: slices, instants and counters (TrackEvent), the tracks they lie on, processes and threads, scheduling
// (sched_switch, sched_waking, sched_wakeup, also in their compact form), clocks, key/value metadata. Packets of other
// kinds are skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/error.h"
#include "formats/io/expansion.h"
#include "formats/io/input.h"
#include "trace/trace.h"

namespace culprit::perfetto {

/// True for the first bytes of a Perfetto trace.
bool looks_like(std::string_view start);

/// Reads the trace; `progress` gets bytes of the file. Times are on the trace's own clock, whose Unix time at 0 is the
/// base. Lanes of one name below one thread or process become one track. A cut or damaged file gives what is whole in
/// it, and losses. Errors: the file cannot be read, or becomes more than `expansion` allows.
Result<Trace> read(formats::Input input, formats::Expansion expansion = formats::Expansion(),
                   const std::function<void(std::uint64_t)>& progress = {});

}  // namespace culprit::perfetto
