#include "record/inject/borrowed.h"

#if defined(__x86_64__)

#include <elf.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "record/collector/collector.h"

namespace culprit::record::inject {

namespace {

constexpr Ns kStopsWithin = 100'000'000;
constexpr Ns kCallEndsWithin = 2'000'000'000;
constexpr Ns kSpin = 2'000'000;
constexpr std::size_t kMostVectors = 16384;
constexpr int kCallStop = SIGTRAP | 0x80;
constexpr int kSignalsInTheWay = 16;
constexpr useconds_t kUntilHandled = 100;
constexpr std::string_view kDoesNotStop = "a thread of it does not stop";
constexpr std::string_view kSignalCame = "a signal came to the thread that was to be stopped";
/// What a thread's own instructions raise: where it is blocked the kernel ends the process.
constexpr std::uint64_t kOwnMistakes = std::uint64_t{1} << (SIGSEGV - 1) | std::uint64_t{1} << (SIGBUS - 1) |
                                       std::uint64_t{1} << (SIGFPE - 1) | std::uint64_t{1} << (SIGILL - 1) |
                                       std::uint64_t{1} << (SIGTRAP - 1) | std::uint64_t{1} << (SIGSYS - 1);

/// Of another process, or a number where ptrace takes either.
void* address(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

long trace(__ptrace_request request, pid_t tid, std::uintptr_t a = 0, std::uintptr_t b = 0) {
  return ptrace(request, tid, address(a), address(b));
}

/// A thread that comes before ordinary ones must not wait awake: who is awaited may stand behind it on the same CPU. It
/// is woken without the slack of ordinary ones, too.
bool may_wait_awake() {
  return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER;  // NOLINT(hicpp-signed-bitwise)
}

}  // namespace

Borrowed::Borrowed(Borrowed&& other) noexcept
    : pid_(other.pid_),
      tid_(std::exchange(other.tid_, 0)),
      signal_(other.signal_),
      event_(other.event_),
      holds_signals_(other.holds_signals_),
      state_(std::move(other.state_)) {}

Borrowed::~Borrowed() {
  if (tid_ != 0) trace(PTRACE_DETACH, tid_, 0, static_cast<std::uintptr_t>(signal_));
}

bool Borrowed::wait_for_stop(Ns most) {
  const Ns begin = monotonic_now();
  const Ns end = begin + most;
  const Ns awake = may_wait_awake() ? kSpin : 0;
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got < 0 && errno != EINTR) return false;
    if (got == tid_) {
      if (!WIFSTOPPED(status)) {  // it has ended
        tid_ = 0;
        return false;
      }
      event_ = status >> 8;
      return true;
    }
    // What is awaited takes microseconds; who sleeps in between wakes after fifty of them.
    const Ns now = monotonic_now();
    if (now > end) return false;
    if (now - begin >= awake)
      usleep(20);
    else
      sched_yield();
  }
}

bool Borrowed::is_stuck(const Error& error) { return error.what == kDoesNotStop; }

Result<Borrowed> Borrowed::stop(pid_t pid, pid_t tid) {
  for (int tries = 1;; ++tries) {
    auto thread = stop_once(pid, tid);
    if (thread || thread.error().what != kSignalCame || tries >= kSignalsInTheWay) return thread;
    usleep(kUntilHandled);
  }
}

Result<Borrowed> Borrowed::stop_once(pid_t pid, pid_t tid) {
  if (trace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0) {
    const int code = errno;
    return environment_error("cannot stop a thread of it: " + errno_text(code), std::to_string(pid),
                             code == EPERM
                                 ? "run as root or as its user; where /proc/sys/kernel/yama/ptrace_scope is 1 or more "
                                   "only root (CAP_SYS_PTRACE) may"
                                 : "");
  }
  Borrowed thread(pid, tid);
  const auto fails = [&](std::string_view what) { return environment_error(std::string(what), std::to_string(pid)); };
  if (trace(PTRACE_INTERRUPT, tid) != 0 || !thread.wait_for_stop(kStopsWithin)) return fails(kDoesNotStop);
  const int stopped_by = thread.event_ & 0xff;
  if (thread.event_ >> 8 != PTRACE_EVENT_STOP || (stopped_by != SIGTRAP)) {
    if (thread.event_ >> 8 == 0 && stopped_by != SIGTRAP) thread.signal_ = stopped_by;  // one that was just coming
    return fails(kSignalCame);
  }
  iovec general{&thread.state_.registers, sizeof thread.state_.registers};
  thread.state_.vectors.resize(kMostVectors);
  iovec vectors{thread.state_.vectors.data(), thread.state_.vectors.size()};
  if (trace(PTRACE_GETREGSET, tid, NT_PRSTATUS, reinterpret_cast<std::uintptr_t>(&general)) != 0 ||
      general.iov_len != sizeof thread.state_.registers ||
      trace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, reinterpret_cast<std::uintptr_t>(&vectors)) != 0 ||
      trace(PTRACE_GETSIGMASK, tid, sizeof thread.state_.blocked,
            reinterpret_cast<std::uintptr_t>(&thread.state_.blocked)) != 0)
    return fails("cannot read the registers of a thread of it");
  thread.state_.vectors.resize(vectors.iov_len);
  return thread;
}

bool Borrowed::set(const user_regs_struct& registers) {
  user_regs_struct copy = registers;
  iovec general{&copy, sizeof copy};
  return trace(PTRACE_SETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uintptr_t>(&general)) == 0;
}

bool Borrowed::to_next_call() {
  for (;;) {
    if (tid_ == 0 || trace(PTRACE_SYSCALL, tid_, 0, static_cast<std::uintptr_t>(std::exchange(signal_, 0))) != 0)
      return false;
    if (!wait_for_stop(kCallEndsWithin)) return false;
    if ((event_ & 0xff) == kCallStop) return true;
    if (event_ >> 8 == 0) signal_ = event_ & 0xff;
  }
}

bool Borrowed::set_mask(std::uint64_t blocked) const {
  return trace(PTRACE_SETSIGMASK, tid_, sizeof blocked, reinterpret_cast<std::uintptr_t>(&blocked)) == 0;
}

bool Borrowed::hold_signals() {
  if (holds_signals_) return true;
  holds_signals_ = set_mask(~kOwnMistakes | state_.blocked);
  return holds_signals_;
}

std::optional<user_regs_struct> Borrowed::registers() const {
  user_regs_struct now{};
  iovec general{&now, sizeof now};
  if (trace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uintptr_t>(&general)) != 0) return std::nullopt;
  return now;
}

bool Borrowed::write(std::uint64_t at, std::span<const std::uint8_t> bytes) const {
  iovec here{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  iovec there{address(at), bytes.size()};
  return process_vm_writev(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes.size());
}

bool Borrowed::let_go(const user_regs_struct& registers) {
  iovec vectors{state_.vectors.data(), state_.vectors.size()};
  // The mask comes first, as long as the registers are those of the way back.
  const bool restored = (!holds_signals_ || set_mask(state_.blocked)) &&
                        trace(PTRACE_SETREGSET, tid_, NT_X86_XSTATE, reinterpret_cast<std::uintptr_t>(&vectors)) == 0 &&
                        set(registers);
  const bool gone_on = trace(PTRACE_DETACH, tid_, 0, static_cast<std::uintptr_t>(signal_)) == 0;
  tid_ = 0;
  return restored && gone_on;
}

}  // namespace culprit::record::inject

#endif
