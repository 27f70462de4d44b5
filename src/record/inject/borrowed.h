// One thread of another process, stopped by ptrace. All calls must come from the thread that made it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/error.h"
#include "core/units.h"
#include "record/inject/signal_frame.h"

namespace culprit::record::inject {

class Borrowed {
 public:
  /// Stops thread `tid` of `pid`. Nothing (no value, no error text) where it does not stop within some milliseconds.
  static Result<Borrowed> stop(pid_t pid, pid_t tid);
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept;
  Borrowed& operator=(Borrowed&&) = delete;
  /// Lets it go on from where it is.
  ~Borrowed();

  [[nodiscard]] const ThreadState& state() const { return state_; }
  [[nodiscard]] bool set(const user_regs_struct& registers);
  /// Runs until the next system call begins or ends; false when the process is gone. Signals are passed on.
  bool to_next_call();
  [[nodiscard]] std::optional<user_regs_struct> registers() const;
  bool write(std::uint64_t at, std::span<const std::uint8_t> bytes) const;
  /// Everything as it was when it was stopped, with these registers; it goes on.
  bool let_go(const user_regs_struct& registers);

 private:
  Borrowed(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {}
  bool wait_for_stop(Ns most);

  pid_t pid_ = 0;
  pid_t tid_ = 0;   ///< 0: let go
  int signal_ = 0;  ///< to pass on
  int event_ = 0;   ///< of the last stop
  ThreadState state_;
};

}  // namespace culprit::record::inject
