// Any bytes as a profile table and as a counter table: no crash, and what was read can be written and read again
// unchanged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/profile_csv/counters_csv.h"
#include "formats/profile_csv/perf_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace culprit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const DecimalRule rule : {DecimalRule::nearest, DecimalRule::reference}) {
    const auto profile = parse_perf_csv(text, "fuzz.csv", {rule, 20});
    if (!profile) continue;
    const auto again = parse_perf_csv(write_perf_csv(*profile), "again.csv", {rule, 20});
    if (!again || again->resources.size() != profile->resources.size() || again->input.bad_rows != 0) std::abort();
  }
  const auto log = parse_counters_csv(text, "fuzz.csv");
  if (!log) return 0;
  const auto again = parse_counters_csv(write_counters_csv(*log), "again.csv");
  if (!again || again->samples.size() != log->samples.size()) std::abort();
  return 0;
}
