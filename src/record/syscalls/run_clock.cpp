#include "record/syscalls/run_clock.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace culprit::record::syscalls {

RunClock::RunClock(std::int32_t tid) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

RunClock::~RunClock() {
  if (fd_ >= 0) close(fd_);
}

RunClock::RunClock(RunClock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunClock& RunClock::operator=(RunClock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::optional<Ns> RunClock::read() const {
  Ns ran = 0;
  if (fd_ < 0 || ::read(fd_, &ran, sizeof ran) != sizeof ran) return std::nullopt;
  return ran;
}

}  // namespace culprit::record::syscalls
