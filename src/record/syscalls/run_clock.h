// For how long a thread runs, to the nanosecond. /proc/PID/task/TID/schedstat says of a thread that runs what was so at
// the last tick, 4 ms ago perhaps, which is too long ago for a window of 20 ms.
#pragma once

#include <cstdint>
#include <optional>

#include "core/units.h"

namespace culprit::record::syscalls {

/// A clock of the kernel (perf_event_open, PERF_COUNT_SW_TASK_CLOCK). The thread pays for it in each of its switches.
class RunClock {
 public:
  /// Begins at 0; there is none where the kernel refuses, or the thread is gone.
  explicit RunClock(std::int32_t tid);
  ~RunClock();
  RunClock(RunClock&& other) noexcept;
  RunClock& operator=(RunClock&& other) noexcept;
  RunClock(const RunClock&) = delete;
  RunClock& operator=(const RunClock&) = delete;

  [[nodiscard]] std::optional<Ns> read() const;

 private:
  int fd_ = -1;
};

}  // namespace culprit::record::syscalls
