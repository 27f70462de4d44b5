// Profilers, tracers and debuggers that run on the machine beside the recording: what they look at they make slower,
// and of it nothing else tells, because they do it in the program's own time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace culprit::record {

/// Names of those that run now, of the machine under `root` ("perf", "strace"). nullopt: processes cannot be seen.
std::optional<std::set<std::string>> running_tools(const std::string& root);

/// Whether a process of this name (15 characters at most, as the kernel keeps it) is one.
bool is_tool(std::string_view name);

}  // namespace culprit::record
