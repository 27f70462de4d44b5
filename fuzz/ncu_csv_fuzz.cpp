// Any bytes as Nsight Compute CSV: no crash, and what was read is consistent.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/ncu_csv/ncu_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace culprit;
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = formats::ncu_csv::parse(text, "fuzz.csv");
  if (!read) {
    require(!read.error().what.empty());
    return 0;
  }
  require(formats::ncu_csv::looks_like(text));
  for (const auto& metric : read->log.metrics) {
    require(metric.launch < read->log.launches.size());
    require(metric.name < read->log.names.size() && metric.unit < read->log.names.size());
  }
  for (const auto& launch : read->log.launches) {
    require(launch.name < read->log.names.size() && launch.latency >= 0);
    require(launch.process >= -1 && launch.process < static_cast<std::int32_t>(read->log.processes.size()));
  }
  for (const auto& table : read->summaries.tables)
    for (const auto& row : table.rows) require(row.values.size() == table.columns.size());
  return 0;
}
