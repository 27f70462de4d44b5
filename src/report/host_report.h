// What the operating system saw of two recordings, as tables.
#pragma once

#include <vector>

#include "model/host_evidence.h"
#include "model/table.h"

namespace culprit::report {

/// The table of thread states per step and that of the counters that moved; none that would be empty. `for_people`
/// gives the counters' values as texts with readable units, else they are numbers beside their SI unit.
std::vector<model::Table> host_tables(const model::HostChanges& changes, bool for_people);

}  // namespace culprit::report
