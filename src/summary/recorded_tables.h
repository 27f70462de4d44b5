// What a recording counted besides slices, as tables: system calls, requests to disks, page faults, who woke whom and
// who ran instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/table_rows.h"
#include "trace/trace.h"

namespace culprit::summary {

/// Rows: at most `limit`, 0 = all; the longest in sum first. Rates are per second of the trace.
struct RecordedTableOptions {
  std::size_t limit = 0;
  Ns duration = 0;  ///< of the trace
  std::size_t most_of_name =
      0;  ///< more processes of one name are one row of calls and page faults; 0: each has its own
};

/// System calls by process: count, rate, total, mean, quantiles (of those that were timed), longest.
model::Table call_table(const Trace& trace, const RecordedTableOptions& options);
/// The same by thread; quantiles are known of processes only.
model::Table thread_call_table(const Trace& trace, const RecordedTableOptions& options);
/// Requests by disk, kind and process that issued them: count, rate, bytes, mean, quantiles, longest.
model::Table disk_table(const Trace& trace, const RecordedTableOptions& options);
/// Page faults of processes while they were recorded.
model::Table fault_table(const Trace& trace, const RecordedTableOptions& options);
/// Who made a thread runnable, and how often.
model::Table waker_table(const Trace& trace, const RecordedTableOptions& options);
/// Who had the CPU when a thread that was in the run queue got it, and how long that had been there.
model::Table rival_table(const Trace& trace, const RecordedTableOptions& options);

/// One of the tables by what `culprit top --by` calls it: request, call, thread-call, disk, fault, waker, rival.
/// `for_people`: many processes of one name, as a script starts them, are one row.
model::Table recorded_table(const Trace& trace, std::string_view by, std::size_t limit, bool for_people = false);
/// Requests, system calls, disks and page faults in a line each; only what was recorded.
std::vector<model::Fact> recorded_facts(const Trace& trace);
/// Those names, in the order in which they are shown.
const std::vector<std::string>& recorded_table_names();

}  // namespace culprit::summary
