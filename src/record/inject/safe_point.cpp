#include "record/inject/safe_point.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "record/collector/agent_name.h"

namespace culprit::record::inject {

bool is_guarded(const Mapping& mapping) {
  if (mapping.path.starts_with("/memfd:" + kAgentName)) return true;  // it is just being loaded
  if (!mapping.path.starts_with('/')) return true;  // code of no file: the vdso, of a compiler at run time
  const std::string_view name = std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1);
  constexpr std::array<std::string_view, 6> kNames = {"libc.so", "libc-", "ld-", "libpthread", "libdl", "ld."};
  return std::ranges::any_of(kNames, [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace culprit::record::inject

#if defined(__x86_64__)

#include <asm/unistd.h>
#include <fmt/format.h>
#include <linux/futex.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>

#include "record/collector/target_memory.h"

namespace culprit::record::inject {

namespace {

/// Calls in which a thread waits for others and for time: neither the allocator nor the loader makes them.
constexpr std::array kWaits = {__NR_epoll_wait,      __NR_epoll_pwait,   __NR_epoll_pwait2, __NR_poll,
                               __NR_ppoll,           __NR_select,        __NR_pselect6,     __NR_nanosleep,
                               __NR_clock_nanosleep, __NR_accept,        __NR_accept4,      __NR_recvfrom,
                               __NR_recvmsg,         __NR_wait4,         __NR_waitid,       __NR_rt_sigtimedwait,
                               __NR_pause,           __NR_rt_sigsuspend, __NR_semtimedop,   __NR_io_getevents,
                               __NR_io_uring_enter};
/// Calls that the allocator, the making of threads and the loader make while they hold their locks.
constexpr std::array kInside = {__NR_brk,     __NR_mmap,       __NR_munmap,         __NR_mprotect,
                                __NR_madvise, __NR_mremap,     __NR_clone,          __NR_clone3,
                                __NR_fork,    __NR_vfork,      __NR_execve,         __NR_execveat,
                                __NR_exit,    __NR_exit_group, __NR_rt_sigreturn,   __NR_set_robust_list,
                                __NR_rseq,    __NR_arch_prctl, __NR_restart_syscall};
constexpr std::size_t kNear = 128, kFar = 4096;  // words of a stack

bool is_in(const auto& calls, long call) { return std::ranges::find(calls, call) != calls.end(); }

const Mapping* mapping_of(const std::vector<Mapping>& code, std::uint64_t address) {
  const auto after = std::ranges::upper_bound(code, address, {}, &Mapping::begin);
  if (after == code.begin()) return nullptr;
  const Mapping& found = *std::prev(after);
  return address < found.end ? &found : nullptr;
}

}  // namespace

bool is_safe(const user_regs_struct& registers, const std::vector<Mapping>& code) {
  const Mapping* where = mapping_of(code, registers.rip);
  if (where == nullptr) return false;
  const auto call = static_cast<long>(registers.orig_rax);
  if (call < 0) return !is_guarded(*where);
  if (std::string_view(where->path).find("/ld-") != std::string_view::npos) return false;
  if (call == __NR_futex) {
    // The locks of the C library wait without a set of bits; conditions, semaphores and Python's lock with one.
    const int operation = static_cast<int>(registers.rsi) & FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT_BITSET || operation == FUTEX_WAKE;
  }
  return is_in(kWaits, call) || !is_in(kInside, call);
}

bool is_in_handler(std::span<const std::uint64_t> stack, std::uint64_t sigreturn) {
  // Behind the address of rt_sigreturn: uc_flags, uc_link, uc_stack (3 words), 18 registers, the segments.
  constexpr std::size_t kFlags = 1, kSegments = 24;
  constexpr std::uint64_t kMostFlags = 7, kUserCode = 0x33;
  for (std::size_t i = 0; i + kSegments < stack.size(); ++i)
    if (stack[i] == sigreturn && stack[i + kFlags] <= kMostFlags && (stack[i + kSegments] & 0xffff) == kUserCode)
      return true;
  return false;
}

bool is_safe_now(std::int64_t pid, const user_regs_struct& registers, const Process& process) {
  if (!is_safe(registers, process.code)) return false;
  const auto call = static_cast<long>(registers.orig_rax);
  const bool waits = call >= 0 && (is_in(kWaits, call) || call == __NR_futex);
  if (process.has_own_allocator && !waits) return false;
  const auto is_allocator = [&](std::uint64_t address) {
    return std::ranges::any_of(process.allocators,
                               [&](const Range& range) { return address >= range.begin && address < range.end; });
  };
  if (is_allocator(registers.rip)) return false;
  // Who waits keeps what earlier calls left on its stack: there only the calls around the wait are looked at.
  const std::size_t words = waits ? kNear : kFar;
  if (waits && process.allocators.empty()) return true;
  std::vector<std::uint64_t> stack(words);
  const auto memory = std::ranges::find_if(
      process.writable, [&](const Range& range) { return registers.rsp >= range.begin && registers.rsp < range.end; });
  if (memory == process.writable.end()) return false;
  stack.resize(std::min<std::size_t>(words, (memory->end - registers.rsp) / sizeof(std::uint64_t)));
  if (!read_target(pid, registers.rsp, stack.data(), stack.size() * sizeof(std::uint64_t))) return false;
  if (std::ranges::any_of(std::span(stack).first(std::min(stack.size(), kNear)), is_allocator)) return false;
  return waits || !is_in_handler(stack, process.sigreturn);
}

std::vector<std::int64_t> threads_to_try(std::int64_t pid, const std::string& proc) {
  std::vector<std::pair<int, std::int64_t>> threads;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/{}/task", proc, pid), code)) {
    if (threads.size() >= kMostThreadsToTry) break;
    const std::string name = entry.path().filename();
    std::int64_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec != std::errc() || tid <= 0) continue;
    std::ifstream file(entry.path() / "syscall");
    std::string text;
    std::getline(file, text);
    long call = -1;
    const bool known = std::from_chars(text.data(), text.data() + text.size(), call).ec == std::errc();
    const int order = known && is_in(kWaits, call) ? 0 : known && call == __NR_futex ? 1 : 2;
    threads.emplace_back(order, tid);
  }
  std::ranges::sort(threads);
  std::vector<std::int64_t> tids;
  tids.reserve(threads.size());
  for (const auto& [order, tid] : threads) tids.push_back(tid);
  return tids;
}

}  // namespace culprit::record::inject

#endif
