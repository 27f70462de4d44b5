// Threads that stood still when the recording began. No switch tells of them, because the last one was before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record::sched {

inline constexpr std::size_t kProcessorField = 39;  ///< of /proc/PID/stat, counted from 1 as in proc(5)

/// Stopped by a signal, or by who traces it.
struct StoppedThread {
  std::int32_t tid = 0;
  std::int32_t tgid = 0;
  std::uint32_t cpu = 0;  ///< that it was last on
  std::string name;
};

/// From the text of /proc/PID/task/TID/stat; tgid is not in it. nullopt: it is not stopped, or the text is none.
std::optional<StoppedThread> parse_stopped(std::string_view stat);

/// Those of a process whose first thread is one: a signal stops all of them. `proc`: where the process file system is.
std::vector<StoppedThread> stopped_threads(std::int32_t pid, const std::string& proc = "/proc");

}  // namespace culprit::record::sched
