// A comparison as tables for other programs: one CSV file each.
#pragma once

#include <string>
#include <vector>

#include "model/comparison.h"

namespace culprit::report {

struct CsvFile {
  std::string name;  ///< without ending
  std::string text;
};

/// What comparison_csv leaves out, numbers as they are: cycle_time (a row per phase), waterfall (per line of the
/// ledger), resources, comparability (per fact of the runs that differs), environment, data_quality (per kind of
/// loss), off_cpu, and what the recorder collected: step_calls, python, on_cpu, disk_requests, disks, requests,
/// step_thread, host_states, host_counters. A table without rows has its heading alone: no file of an earlier
/// comparison stays beside these.
std::vector<CsvFile> comparison_csv_files(const model::RunComparison& comparison);

}  // namespace culprit::report
