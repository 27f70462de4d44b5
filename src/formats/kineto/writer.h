// Writes a trace as the JSON that Kineto writes, so that viewers open it and loading it again gives the same trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "trace/trace.h"

namespace culprit::formats::kineto {

using ByteSink = std::function<Status(std::string_view)>;

/// Writes the events of one rank (a row of Trace::ranks), in row order, as JSON text to `sink` in pieces of about 64
/// KiB. Times are exact to the nanosecond. Valid JSON for any name: invalid UTF-8 becomes U+FFFD. Needs memory for the
/// escaped names, not for the events. What Culprit does not keep (unused arguments, losses) is not written.
Status write_trace(const Trace& trace, std::uint16_t rank, const ByteSink& sink);

/// The same to an OutputFile (core/output_file.h) with mode 0600; compressed when `path` ends in ".gz".
Status save_trace(const Trace& trace, std::uint16_t rank, const std::string& path, bool replace = false);

}  // namespace culprit::formats::kineto
