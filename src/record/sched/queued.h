// Threads that waited for a CPU when the recording began and never got one. No switch and no wake-up tells of them:
// both were before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace culprit::record::sched {

struct QueuedThread {
  std::int32_t tid = 0;
  std::int32_t tgid = 0;
  std::uint64_t run_ns = 0;  ///< that it had run
  std::string name;
};

/// Threads of a process that can run, the agent's apart: they wait for a CPU, or run. At most `most`. `proc`: where the
/// process file system is.
std::vector<QueuedThread> queued_threads(std::int32_t pid, std::size_t most, const std::string& proc = "/proc");

/// It still can, and has not run since.
bool is_still_queued(const QueuedThread& thread, const std::string& proc = "/proc");

}  // namespace culprit::record::sched
