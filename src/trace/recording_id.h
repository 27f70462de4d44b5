// By which number a recording is known again in whatever format it was exported to.
#pragma once

#include <string_view>

#include "trace/trace.h"

namespace culprit {

/// The fact that holds it: drawn at random when the file is begun.
inline constexpr std::string_view kRecordingId = "record.id";

/// Of the only recording in the trace; "" for other traces and for several in one.
std::string_view recording_id(const Trace& trace);

}  // namespace culprit
