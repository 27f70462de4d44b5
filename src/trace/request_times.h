// What the requests took that a server told of (collector `python`): slices of the category "request".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace culprit {

/// Category of slices that are times of a request, from one program's view: no function runs in them.
inline constexpr std::string_view kRequestCategory = "request";

/// One kind of time of the requests that one process answered.
struct RequestTimes {
  std::string what;  ///< "time to first token", "queue wait", ...; others as they are called in the file
  std::string process;
  std::int64_t pid = -1;
  std::vector<double> times;  ///< ns, ascending; at least one
};

/// In the order in which people ask for them, then by process.
std::vector<RequestTimes> request_times(const Trace& trace);

}  // namespace culprit
