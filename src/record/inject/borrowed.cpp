#include "record/inject/borrowed.h"

#if defined(__x86_64__)

#include <elf.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "record/collector/collector.h"
#include "record/inject/status_file.h"

namespace culprit::record::inject {

namespace {

constexpr Ns kCallEndsWithin = 10'000'000'000;  // of a thread that hardly gets a CPU
constexpr Ns kSpin = 2'000'000;
constexpr Ns kSoon = 100'000'000;
constexpr std::size_t kMostVectors = 16384;
constexpr int kCallStop = SIGTRAP | 0x80;
constexpr int kSignalsInTheWay = 16;
constexpr useconds_t kUntilHandled = 100;
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

bool has_exited(const siginfo_t& seen) {
  return seen.si_code == CLD_EXITED || seen.si_code == CLD_KILLED || seen.si_code == CLD_DUMPED;
}

bool is_child_of_ours(pid_t pid) { return number_in("/proc/" + std::to_string(pid) + "/status", "PPid:") == getpid(); }

}  // namespace

Borrowed::Borrowed(Borrowed&& other) noexcept
    : pid_(other.pid_),
      tid_(std::exchange(other.tid_, 0)),
      signal_(other.signal_),
      event_(other.event_),
      passed_on_(other.passed_on_),
      is_interrupted_(other.is_interrupted_),
      stands_(other.stands_),
      holds_signals_(other.holds_signals_),
      state_(std::move(other.state_)) {}

Borrowed::~Borrowed() {
  if (tid_ != 0 && !stands_) take_stop();  // a signal may have come to it
  if (tid_ != 0) trace(PTRACE_DETACH, tid_, 0, static_cast<std::uintptr_t>(signal_));
}

void wait_a_moment(Ns begin) {
  // What is awaited takes microseconds; who sleeps in between wakes after fifty of them.
  if (monotonic_now() - begin < kSpin && may_wait_awake())
    sched_yield();
  else
    usleep(monotonic_now() - begin < kSoon ? 20 : 200);
}

/// Whether it stopped, or has ended. How a child of this process ended is for who started it to take.
bool Borrowed::take_stop() {
  siginfo_t seen{};
  const auto look = [&](int options) {
    return waitid(P_PID, static_cast<id_t>(tid_), &seen, options | WNOHANG | __WALL) == 0;
  };
  const bool is_there = look(WEXITED | WSTOPPED | WNOWAIT);
  if (is_there && seen.si_pid == 0) return false;
  if (!is_there || has_exited(seen)) {
    if (is_there && !(tid_ == pid_ && is_child_of_ours(pid_))) look(WEXITED);
    tid_ = 0;
    return true;
  }
  // Killed since, it is seen at the next look.
  if (!look(WSTOPPED) || seen.si_pid == 0) return false;
  event_ = seen.si_status;
  if (!stands_ && event_ >> 8 == 0) signal_ = event_ & 0xff;
  return true;
}

bool Borrowed::wait_for_stop(Ns most, const std::function<bool()>& goes_on) {
  const Ns begin = monotonic_now();
  const Ns end = begin + most;
  for (;;) {
    if (take_stop()) return tid_ != 0;
    if (monotonic_now() > end || (goes_on && !goes_on())) return false;
    wait_a_moment(begin);
  }
}

Result<Borrowed> Borrowed::seize(pid_t pid, pid_t tid) {
  if (trace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) == 0) return Borrowed(pid, tid);
  const int code = errno;
  return environment_error("cannot stop a thread of it: " + errno_text(code), "process " + std::to_string(pid),
                           code == EPERM ? "run as root or as its user; where /proc/sys/kernel/yama/ptrace_scope is 1 "
                                           "or more only root (CAP_SYS_PTRACE) may"
                                         : "");
}

Borrowed::Stop Borrowed::stop(Ns most) {
  const Ns end = monotonic_now() + most;
  for (;;) {
    const bool has_stopped = !is_interrupted_ ? take_stop() : wait_for_stop(std::max(end - monotonic_now(), Ns{0}));
    if (tid_ == 0) return Stop::failed;
    if (!has_stopped) {
      if (is_interrupted_) return Stop::not_yet;
      if (trace(PTRACE_INTERRUPT, tid_) != 0) return Stop::failed;
      is_interrupted_ = true;
      continue;
    }
    if (event_ == (SIGTRAP | PTRACE_EVENT_STOP << 8)) break;
    const bool is_signal = event_ >> 8 == 0;
    if (!is_signal || ++passed_on_ > kSignalsInTheWay ||
        trace(PTRACE_CONT, tid_, 0, static_cast<std::uintptr_t>(std::exchange(signal_, 0))) != 0)
      return Stop::failed;
    is_interrupted_ = false;
    usleep(kUntilHandled);
  }
  stands_ = read_state();
  return stands_ ? Stop::stopped : Stop::failed;
}

bool Borrowed::read_state() {
  iovec general{&state_.registers, sizeof state_.registers};
  state_.vectors.resize(kMostVectors);
  iovec vectors{state_.vectors.data(), state_.vectors.size()};
  if (trace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uintptr_t>(&general)) != 0 ||
      general.iov_len != sizeof state_.registers ||
      trace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, reinterpret_cast<std::uintptr_t>(&vectors)) != 0 ||
      trace(PTRACE_GETSIGMASK, tid_, sizeof state_.blocked, reinterpret_cast<std::uintptr_t>(&state_.blocked)) != 0)
    return false;
  state_.vectors.resize(vectors.iov_len);
  return true;
}

bool Borrowed::set(const user_regs_struct& registers) {
  user_regs_struct copy = registers;
  iovec general{&copy, sizeof copy};
  return trace(PTRACE_SETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uintptr_t>(&general)) == 0;
}

bool Borrowed::to_next_call(const std::function<bool()>& goes_on) {
  for (;;) {
    if (tid_ == 0 || trace(PTRACE_SYSCALL, tid_, 0, static_cast<std::uintptr_t>(std::exchange(signal_, 0))) != 0)
      return false;
    if (!wait_for_stop(kCallEndsWithin, goes_on)) return false;
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
