// The counter samples that the reference tool exports beside a profile (`*_counters_data.csv`).
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/profile_csv/perf_csv.h"
#include "model/profile.h"

namespace culprit::formats {

/// The samples in `text`, in file order; `file` names it in messages. The columns counter_name, timestamp and value
/// must be there, hostname may. Rows that cannot be used are left out, counted and described in CounterLog::input.
Result<model::CounterLog> parse_counters_csv(std::string_view text, std::string_view file, CsvStyle* style = nullptr);

/// The same from a file.
Result<model::CounterLog> read_counters_csv(const std::string& path, CsvStyle* style = nullptr);

/// The samples as text, six decimals, in the order of CounterLog::samples.
std::string write_counters_csv(const model::CounterLog& log, const CsvStyle& style = {});

}  // namespace culprit::formats
