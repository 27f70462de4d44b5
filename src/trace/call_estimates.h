// In how much of a recording system calls were looked at, where that was not always: their numbers are estimates then.
#pragma once

#include <optional>
#include <string>

#include "trace/trace.h"

namespace culprit {

struct CallEstimates {
  double share = 1;             ///< of the time
  std::optional<double> error;  ///< half of the 95 % interval of the number of all calls, as a share of it
};

/// What the recorder says; nullopt: every call was counted, or none.
std::optional<CallEstimates> call_estimates(const Trace& trace);

/// "counted in 12 % of the time, ± 2.6 %".
std::string to_string(const CallEstimates& estimates);

}  // namespace culprit
