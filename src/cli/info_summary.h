// The first screen of `culprit info`: what a trace is, in a line each.
#pragma once

#include <string>

#include "model/table.h"
#include "model/trace_info.h"

namespace culprit::cli {

/// At most 20 rows, so that with its heading and lines about the rest it fits a terminal of 25 lines: of more the least
/// important ones are left out, which the sections have.
model::Table info_summary(const model::TraceInfo& info);

/// "Nsight Systems SQLite, schema 3": databases name themselves; Kineto writes a schema version; other Chrome traces
/// have none.
std::string format_of(const model::RankInfo& rank);

}  // namespace culprit::cli
