// System calls, requests to disks and functions on the CPU of two recordings, side by side.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

/// System calls by what their numbers are per, at most `most_rows` of those that do not wait. 0: all, and all columns.
model::Table calls_table(std::string title, std::string key, const std::vector<model::CallChange>& changes,
                         std::size_t most_rows);

/// The member `name`: all of them.
void write_calls(JsonWriter& json, std::string_view name, const std::vector<model::CallChange>& calls);

/// System calls of a step, requests to disks, and those of the program by step or unit of work, at most `most_rows`
/// kinds, what the threads waited for and behind whom, and the functions that ran more or less than before; those
/// without rows are left out. 0: all, and all columns, as files have them.
std::vector<model::Table> collected_tables(const model::RunComparison& comparison, std::size_t most_rows);

/// The same for files, a table each, with or without rows: step_calls, python, on_cpu, disk_requests, disks.
std::vector<model::Table> collected_rows(const model::RunComparison& comparison);

/// Members "system_calls", "disks", "disk_requests", "on_cpu", "python" and "off_cpu" of the answer.
void write_collected(JsonWriter& json, const model::RunComparison& comparison);

}  // namespace culprit::report
