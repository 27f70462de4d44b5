// A profile as tables: everything for programs, and the mean cycle of each phase for people.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "model/cycles.h"
#include "model/profile.h"
#include "model/table.h"

namespace culprit::profile {

std::string_view to_string(model::Provenance provenance);
std::string_view to_string(model::Phase phase);

/// One row per cycle, per use, per (use, resource) and per counter sample. Times in ns, everything else SI. Keys:
/// cycles, functions, resources, counters.
model::Table cycles_table(const model::Profile& profile);
model::Table functions_table(const model::Profile& profile);
model::Table resources_table(const model::Profile& profile);
model::Table counters_table(const model::Profile& profile);
/// One row per line of the ledger. Key: ledger.
model::Table ledger_table(const model::Profile& profile);

struct SummaryOptions {
  std::size_t limit = 15;  ///< functions per phase; 0: all
  bool gpu_only = true;    ///< leave out what ran on the host when there is GPU work
};

/// One table per phase that occurs: functions by mean time per cycle (a cycle without the function counts as 0), with
/// exposed time, beta and calls; then one of the resource series. Functions of one name on one device of one rank are
/// one row.
std::vector<model::Table> summary_tables(const model::Profile& profile, const SummaryOptions& options);

}  // namespace culprit::profile
