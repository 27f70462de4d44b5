// Writes any trace as a Perfetto trace, so that the Perfetto UI and trace_processor open it and reading it again gives
// the same slices.
#pragma once

#include <string>

#include "core/error.h"
#include "trace/trace.h"

namespace culprit::perfetto {

/// Writes `trace`, all ranks, to `path` as an OutputFile (core/output_file.h) with mode 0600.
/// GPU streams, asynchronous slices and scheduling lie on tracks of their own below their process or thread; slices
/// that overlap without nesting get lanes. Process and thread ids that do not fit Linux's numbers, or that two ranks
/// share, are replaced by numbers from 2^30 on.
/// Of what the scheduler did the times are written; counts of switches and who woke whom are not (copy.h keeps them).
Status save_trace(const Trace& trace, const std::string& path, bool replace = false);

}  // namespace culprit::perfetto
