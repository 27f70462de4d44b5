// What one capture knows about its kernels without being a trace: every launch in order (a launch log), or one row per
// name (a summary table as a profiler prints it).
//
// Units are SI: nanoseconds, fractions 0..1, bytes. What the source does not say is unknown: NaN for numbers, -1 for
// ids and times, 0 in every dimension of an unknown grid or block. An unknown is never 0.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"
#include "model/input_report.h"
#include "model/profile.h"

namespace culprit::model {

inline constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

/// One launch of one kernel.
struct KernelLaunch {
  StringId name = 0;              ///< as the source writes it (KernelLog::names)
  StringId short_name = 0;        ///< the source's own short form, 0 = it has none
  Ns latency = 0;                 ///< time on the device
  Ns begin = -1;                  ///< since the first launch of the log, -1 = unknown
  float tensor = kUnknown;        ///< tensor pipe use, fraction of peak
  float dram = kUnknown;          ///< device memory throughput, fraction of peak
  float sm = kUnknown;            ///< compute (SM) throughput, fraction of peak
  float occupancy = kUnknown;     ///< achieved warps per SM, fraction of the most possible
  double flops = kNoNumber;       ///< floating point operations
  double dram_bytes = kNoNumber;  ///< bytes read from and written to device memory
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint16_t block[3] = {0, 0, 0};
  std::int16_t device = -1;
  std::int32_t stream = -1;
  std::int32_t process = -1;  ///< row of KernelLog::processes
};

/// A process of the capture.
struct KernelProcess {
  std::int64_t pid = -1;
  std::string name;
};

/// Where a log comes from.
enum class KernelSource : std::uint8_t { unknown, text_log, ncu_csv, trace };

/// Counters of a source that have no column of their own in KernelLaunch, per launch.
struct KernelMetric {
  std::uint32_t launch = 0;  ///< row of KernelLog::launches
  StringId name = 0;         ///< as the source writes it (KernelLog::names)
  StringId unit = 0;         ///< SI or as written when it is no known unit
  double value = kNoNumber;
};

/// Launches in the order of the source: as listed (text log, ncu), or by begin (traces).
struct KernelLog {
  StringTable names;
  std::vector<KernelLaunch> launches;
  std::vector<KernelProcess> processes;
  std::vector<KernelMetric> metrics;  ///< by launch, then in the order of the source
  KernelSource source = KernelSource::unknown;
  bool names_cut = false;           ///< the source shortens long names ("..."): equal names may be different kernels
  std::vector<std::string> notes;   ///< what a reader of the numbers has to know (summaries, medians, assumptions)
  std::vector<InputReport> inputs;  ///< one per file: what was read and what was not
};

/// What a column of a summary table holds.
enum class SummaryColumnKind : std::uint8_t { time, percent, count, bytes, number, text };

struct SummaryColumn {
  std::string title;  ///< as printed ("Self CUDA %")
  SummaryColumnKind kind = SummaryColumnKind::text;
  std::size_t width = 12;  ///< as printed
};

/// One printed value with what rounding hides: the true value lies in [low, high].
struct SummaryValue {
  double value = kNoNumber;  ///< ns, fraction 0..1, count, bytes or plain; NaN = the cell is empty or text
  double low = kNoNumber;
  double high = kNoNumber;
  std::string text;  ///< as printed
};

struct SummaryRow {
  std::string name;
  bool name_cut = false;             ///< ends in "..."
  std::vector<SummaryValue> values;  ///< one per column behind the name
  // The columns that analyses use, whatever they are called in this table; NaN when it has none of them.
  double self_device_ns = kNoNumber;
  double total_device_ns = kNoNumber;
  double self_cpu_ns = kNoNumber;
  double average_device_ns = kNoNumber;
  double share = kNoNumber;  ///< self device time over the total of the complete table
  double calls = kNoNumber;
};

/// The total behind the percentages of one column pair, recovered as time / percent over all rows.
struct SummaryTotal {
  bool known = false;
  double low = kNoNumber;   ///< ns; the true total lies between low and high for every row's rounding
  double high = kNoNumber;  ///< ns
  bool printed = false;     ///< the table states it ("Self CUDA time total: ...") and low == value - rounding
};

/// One table with one row per name.
struct KernelSummary {
  std::string caption;                 ///< line above the table without the colon ("forward only"), may be empty
  std::vector<SummaryColumn> columns;  ///< behind the name
  std::vector<SummaryRow> rows;
  std::vector<std::string> footers;  ///< lines below the table ("Self CUDA time total: 1.090s")
  SummaryTotal device_total;
  SummaryTotal cpu_total;
  double listed_device_ns = kNoNumber;  ///< sum of self device time over the rows
  bool cut = false;                     ///< rows are missing: total > listed beyond rounding
  double missing_low_ns = kNoNumber;    ///< self device time of the rows that are not in the table
  double missing_high_ns = kNoNumber;
  std::uint64_t line = 0;  ///< of the header, 1-based
};

/// All summary tables of one file.
struct KernelSummaries {
  std::vector<KernelSummary> tables;
  InputReport input;
};

}  // namespace culprit::model
