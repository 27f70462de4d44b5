// Any bytes as a launch log and as a profiler's tables: no crash, and what was read can be written and read again with
// the same values.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/kernel_text/launch_log.h"
#include "formats/kernel_text/summary_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace culprit::formats::kernel_text;
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto log = parse_launch_log(text, "fuzz.txt")) {
    require(looks_like_launch_log(text));
    const auto again = parse_launch_log(write_launch_log(*log), "again.txt");
    require(again && again->launches.size() == log->launches.size());
    for (std::size_t i = 0; i < log->launches.size(); ++i)
      require(again->launches[i].latency == log->launches[i].latency &&
              std::isnan(again->launches[i].tensor) == std::isnan(log->launches[i].tensor));
  }
  if (const auto tables = parse_summary_tables(text, "fuzz.txt")) {
    for (const auto& table : tables->tables) {
      for (const auto& row : table.rows) require(row.values.size() == table.columns.size());
      require(!table.device_total.known || table.device_total.low <= table.device_total.high);
    }
    (void)write_summary_tables(*tables);
  }
  return 0;
}
