// What `culprit info` says about a recording beside its slices: the facts its recorder wrote down, and scheduling.
#pragma once

#include <vector>

#include "model/table.h"
#include "model/trace_info.h"

namespace culprit::cli {

/// Environment, what could not be seen and why, cost and losses of the recorder, other facts; those that have rows.
std::vector<model::Table> metadata_tables(const model::TraceInfo& info);
/// Sums per process; empty without scheduling.
model::Table process_sched_table(const model::TraceInfo& info);
/// How the table of threads says whom a thread waited for.
enum class PeersAs {
  text,   ///< columns with the first few
  lists,  ///< not at all: who asks writes them whole beside the row
};
/// Sums per thread, at most `most` rows; 0 = all.
model::Table thread_sched_table(const model::TraceInfo& info, std::size_t most, PeersAs peers = PeersAs::text);

}  // namespace culprit::cli
