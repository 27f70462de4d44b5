// The profile as the reference tool computes it: its functions, resources, scaling and names, over its cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deepdive/hardware.h"
#include "deepdive/profile.h"
#include "deepdive/reference_cycles.h"

namespace culprit::deepdive {

/// One table of the reference: `suffix` is "", "_prefill" or "_decode".
struct ReferenceTable {
  std::string suffix;
  Profile profile;
  CounterLog counters;
};

/// Measures every cycle (formulas and units of the reference) and splits the result
/// into its tables. Resources of a device are those of its own number on its own host, also when processes number their
/// devices differently. `cores` > 0 replaces the number of cores. O(m log m) in members of cycles and their samples.
std::vector<ReferenceTable> reference_profile(const Trace& trace, const ReferenceCycles& cycles,
                                              const Hardware& hardware, std::int64_t cores = 0);

}  // namespace culprit::deepdive
