// Which process is meant, and whether it may be disturbed. A number alone names no process, because numbers are used
// again: a process is its number and its start time, and signals go through a descriptor of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::faults {

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< clock ticks since boot, field 22 of /proc/PID/stat
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

/// What /proc/PID/stat and status say.
struct ProcessFacts {
  ProcessId id;
  pid_t parent = 0;
  char state = '?';
  bool kernel_thread = false;
  uid_t user = 0;  ///< effective
};

/// Nothing when there is no such process (any more).
std::optional<ProcessFacts> process_facts(pid_t pid);

/// A process that cannot be confused with a later one of the same number.
class ProcessHandle {
 public:
  /// Nothing when the process has ended.
  static std::optional<ProcessHandle> open(ProcessId id);
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();

  [[nodiscard]] ProcessId id() const { return id_; }
  /// Readable (poll) when the process has ended.
  [[nodiscard]] int descriptor() const { return fd_; }
  [[nodiscard]] bool ended() const;
  /// Whether the signal was sent; errno says why not.
  [[nodiscard]] bool signal(int number) const;

 private:
  ProcessHandle(ProcessId id, int fd) : id_(id), fd_(fd) {}
  ProcessId id_;
  int fd_ = -1;
};

/// The target, when it may be disturbed. Error: it does not exist, is process 1, this process or one of its ancestors
/// (its shell would stop), a kernel thread, or belongs to another user (root may say `any_user`).
Result<ProcessHandle> open_target(pid_t pid, bool any_user);

/// The process and its living descendants, ordered by number. Empty when it has ended.
std::vector<ProcessId> process_tree(ProcessId root);

/// CPUs that all of the process's first thread may run on; those of this process for pid 0.
std::vector<int> allowed_cpus(pid_t pid);

}  // namespace culprit::faults
