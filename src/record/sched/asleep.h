// In what threads sleep that never run while they are recorded. No switch tells of them: they fell asleep before it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record::sched {

/// From the text of /proc/PID/task/TID/syscall: "epoll_wait"; "futex", "futex with a time-out", "futex in shared
/// memory"; "running"; "no system call". nullopt: it is no such text.
std::optional<std::string> parse_sleep(std::string_view text);

/// What all threads of the processes but the recorder's own sleep in, the most frequent first: "futex (12), epoll_wait
/// (1)". Where the call may not be read, the function of the kernel (/proc/PID/task/TID/wchan) stands instead, or
/// "unknown". Empty: there is no thread. Of many threads, those beyond kMostAsleep are "unknown". `proc`: where the
/// process file system is.
std::string asleep_in(const std::vector<Target>& targets, const std::string& proc = "/proc");
inline constexpr std::size_t kMostAsleep = 8192;

}  // namespace culprit::record::sched
