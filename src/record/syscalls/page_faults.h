// Page faults of a process as the kernel counts them. The tracepoint of page faults costs every fault and does not tell
// major from minor; the kernel's own totals do, for nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::record::syscalls {

/// Since the process started.
struct PageFaults {
  std::int64_t minor = 0;
  std::int64_t major = 0;  ///< had to be read from a disk
};

/// From the text of /proc/PID/stat (proc(5): fields 10 and 12; the name in parentheses may hold anything).
std::optional<PageFaults> parse_page_faults(std::string_view stat);
/// nullopt: the process is gone.
std::optional<PageFaults> read_page_faults(std::int64_t pid);

}  // namespace culprit::record::syscalls
