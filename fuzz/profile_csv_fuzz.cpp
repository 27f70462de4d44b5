// Any bytes as a profile table: no crash, and what was read can be written and read again
// unchanged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "deepdive/perf_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace culprit::deepdive;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const DecimalRule rule : {DecimalRule::nearest, DecimalRule::reference}) {
    const auto profile = parse_perf_csv(text, "fuzz.csv", {rule, 20});
    if (!profile) continue;
    const auto again = parse_perf_csv(write_perf_csv(*profile), "again.csv", {rule, 20});
    if (!again || again->resources.size() != profile->resources.size() || again->input.bad_rows != 0) std::abort();
  }
  return 0;
}
