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
  /// Whether stop() failed because it did not: it may be traced still, and is not to be asked again.
  static bool is_stuck(const Error& error);
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept;
  Borrowed& operator=(Borrowed&&) = delete;
  /// Lets it go on from where it is.
  ~Borrowed();

  [[nodiscard]] const ThreadState& state() const { return state_; }
  [[nodiscard]] bool set(const user_regs_struct& registers);
  /// Until let_go() signals wait, but those of its own mistakes. A thread that ends otherwise has this mask for good:
  /// its way back must hold the one of state().
  bool hold_signals();
  /// Runs until the next system call begins or ends; false when the process is gone. Signals are passed on.
  bool to_next_call();
  [[nodiscard]] std::optional<user_regs_struct> registers() const;
  bool write(std::uint64_t at, std::span<const std::uint8_t> bytes) const;
  /// Everything as it was when it was stopped, with these registers; it goes on. The way back must still lie there: it
  /// is taken when this is cut short.
  bool let_go(const user_regs_struct& registers);

 private:
  Borrowed(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {}
  static Result<Borrowed> stop_once(pid_t pid, pid_t tid);
  bool wait_for_stop(Ns most);
  bool set_mask(std::uint64_t blocked) const;

  pid_t pid_ = 0;
  pid_t tid_ = 0;   ///< 0: let go
  int signal_ = 0;  ///< to pass on
  int event_ = 0;   ///< of the last stop
  bool holds_signals_ = false;
  ThreadState state_;
};

}  // namespace culprit::record::inject
