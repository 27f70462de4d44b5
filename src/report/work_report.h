// Units of work of one recording, as tables and JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "model/table.h"
#include "model/work_units.h"

namespace culprit::report {

/// The first lines about a recording: what and what it was like, at most ten pairs. Empty when it has no scheduling.
std::vector<std::pair<std::string, std::string>> work_lines(const model::WorkUnits& work);

/// Units that were found; what the time went to per unit; system calls per unit; processes beside.
std::vector<model::Table> work_tables(const model::WorkUnits& work, std::size_t most_rows);

/// Where the time of all recorded threads went, each moment of a thread once; waits for work are a table of their own,
/// so are system calls, whose time lies inside those. For `top`; at most `most_rows` each, 0: all.
std::vector<model::Table> work_time_tables(const model::WorkUnits& work, std::size_t most_rows);

/// The member "work_units".
void write_work(JsonWriter& json, const model::WorkUnits& work);

}  // namespace culprit::report
