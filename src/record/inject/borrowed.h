// One thread of another process, stopped by ptrace. All calls must come from the thread that made it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/error.h"
#include "core/units.h"
#include "record/inject/signal_frame.h"

namespace culprit::record::inject {

class Borrowed {
 public:
  /// Thread `tid` of `pid`, which runs on: nobody else can have it.
  static Result<Borrowed> seize(pid_t pid, pid_t tid);
  enum class Stop : std::uint8_t { stopped, not_yet, failed };
  /// Waits so long until it stands still. May be called again when it does not yet: it does as soon as it gets a CPU.
  /// Signals that come are passed on before.
  Stop stop(Ns most);
  /// Of one that was asked to stop: whether it does now, or has ended, so that it can be let go of.
  [[nodiscard]] bool has_come() { return tid_ == 0 || take_stop(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept;
  Borrowed& operator=(Borrowed&&) = delete;
  /// Lets it go on from where it is. One that runs is let go by the kernel when the thread that seized it ends.
  ~Borrowed();

  [[nodiscard]] pid_t tid() const { return tid_; }
  [[nodiscard]] const ThreadState& state() const { return state_; }
  [[nodiscard]] bool set(const user_regs_struct& registers);
  /// Until let_go() signals wait, but those of its own mistakes. A thread that ends otherwise has this mask for good:
  /// its way back must hold the one of state().
  bool hold_signals();
  /// Runs until the next system call begins or ends; false when the process is gone, or when it takes too long and
  /// `goes_on`, which is asked again and again meanwhile, says so. Signals are passed on.
  bool to_next_call(const std::function<bool()>& goes_on);
  [[nodiscard]] std::optional<user_regs_struct> registers() const;
  bool write(std::uint64_t at, std::span<const std::uint8_t> bytes) const;
  /// Everything as it was when it was stopped, with these registers; it goes on. The way back must still lie there: it
  /// is taken when this is cut short.
  bool let_go(const user_regs_struct& registers);

 private:
  Borrowed(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {}
  bool wait_for_stop(Ns most, const std::function<bool()>& goes_on = {});
  bool take_stop();
  bool read_state();
  bool set_mask(std::uint64_t blocked) const;

  pid_t pid_ = 0;
  pid_t tid_ = 0;      ///< 0: let go
  int signal_ = 0;     ///< to pass on
  int event_ = 0;      ///< of the last stop
  int passed_on_ = 0;  ///< signals, before it was stopped
  bool is_interrupted_ = false;
  bool stands_ = false;
  bool holds_signals_ = false;
  ThreadState state_;
};

/// Between two looks at threads that are awaited since `begin`: awake as long as that is likely to be short.
void wait_a_moment(Ns begin);

}  // namespace culprit::record::inject
