// The per-cycle table of the reference tool (`*_perf_data.csv`): one row per cycle, function, process, device and
// resource.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "deepdive/decimal.h"
#include "deepdive/profile.h"

namespace culprit::deepdive {

/// How the text of a table looks apart from its values; writing with the style that was read gives the same bytes.
struct CsvStyle {
  bool crlf = false;
  bool byte_order_mark = false;
};

struct PerfCsvOptions {
  DecimalRule decimals = DecimalRule::nearest;  ///< of every number
  std::size_t most_damage = 20;                 ///< places of damage described; all are counted
};

/// The table in `text`; `file` names it in messages. Columns are found by their names, in any order; cycle, pid,
/// beta_pct, function_name, metric_name, device, mu_pct and anchor_dur_us must be there. Rows that cannot be used are
/// left out, counted and described in Profile::input. `style`, when given, receives how the text looked. An input error
/// names a missing column.
Result<Profile> parse_perf_csv(std::string_view text, std::string_view file, const PerfCsvOptions& options = {},
                               CsvStyle* style = nullptr);

/// The same from a file.
Result<Profile> read_perf_csv(const std::string& path, const PerfCsvOptions& options = {}, CsvStyle* style = nullptr);

/// The table as text, four decimals, rows in the order of Profile::resources. A name that a spreadsheet would run as a
/// formula gets an apostrophe in front, which reading takes off again.
std::string write_perf_csv(const Profile& profile, const CsvStyle& style = {});

}  // namespace culprit::deepdive
