#include "record/inject/seccomp.h"

#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "record/collector/collector.h"

namespace culprit::record::inject {

namespace {

constexpr std::size_t kMostFilters = 256;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t kUnknownCall = SECCOMP_RET_ERRNO | ENOSYS;

/// The word of the description of a call at `offset`.
std::optional<std::uint32_t> word_of(const seccomp_data& call, std::uint32_t offset) {
  if (offset % 4 != 0 || offset > sizeof call - 4) return std::nullopt;
  std::uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&call) + offset, sizeof word);
  return word;
}

std::optional<std::uint32_t> calculated(std::uint32_t operation, std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t kBits = 32;
  switch (operation) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b != 0 ? std::optional(a / b) : std::nullopt;
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return b < kBits ? std::optional(a << b) : std::nullopt;
    case BPF_RSH:
      return b < kBits ? std::optional(a >> b) : std::nullopt;
    case BPF_NEG:
      return 0 - a;
    default:
      return std::nullopt;
  }
}

bool is_true(std::uint32_t test, std::uint32_t a, std::uint32_t b) {
  switch (test) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    default:
      return (a & b) != 0;  // BPF_JSET
  }
}

/// What the agent asks for. Arguments that filters look at are those that it gives.
struct Need {
  int number = 0;
  std::string_view name;
  std::uint64_t first = 0;
  bool may_be_unknown = false;
  std::uint64_t third = 0;  ///< protection of memory
};

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint64_t kThreadFlags = 0x3d0f00;  // of clone(), as glibc makes threads
constexpr std::uint64_t kSetName = 15;            // of prctl()
constexpr auto kNeeds = std::to_array<Need>({
    {SYS_memfd_create, "memfd_create"},
    {SYS_mmap, "mmap", 0, false, PROT_READ | PROT_WRITE},
    {SYS_mmap, "mmap", 0, false, PROT_READ | PROT_EXEC},
    {SYS_munmap, "munmap"},
    {SYS_mprotect, "mprotect", 0, false, PROT_READ},
    {SYS_madvise, "madvise"},
    {SYS_openat, "openat"},
    {SYS_read, "read"},
    {SYS_pread64, "pread64"},
    {SYS_fstat, "fstat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_close, "close"},
    {SYS_brk, "brk"},
    {SYS_futex, "futex"},
    {SYS_clock_gettime, "clock_gettime"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_gettid, "gettid"},
    {SYS_rt_sigprocmask, "rt_sigprocmask"},
    {SYS_rt_sigreturn, "rt_sigreturn"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_set_robust_list, "set_robust_list"},
    {SYS_exit, "exit"},
    {SYS_prctl, "prctl", kSetName},
    {SYS_clone, "clone", kThreadFlags},
    {SYS_clone3, "clone3", 0, true},
    {SYS_rseq, "rseq", 0, true},
});
#else
constexpr std::uint32_t kArchitecture = 0;
constexpr std::array<Need, 0> kNeeds{};
#endif

}  // namespace

std::uint32_t run_filter(std::span<const sock_filter> filter, const seccomp_data& call) {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory{};
  // Jumps go forward only: it ends.
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& step = filter[at];
    const std::uint32_t operand = BPF_SRC(step.code) == BPF_X ? x : step.k;
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
      case BPF_LDX: {
        std::uint32_t value = step.k;
        if (BPF_MODE(step.code) == BPF_ABS) {
          const auto word = word_of(call, step.k);
          if (!word) return kKill;
          value = *word;
        } else if (BPF_MODE(step.code) == BPF_LEN) {
          value = sizeof call;
        } else if (BPF_MODE(step.code) == BPF_MEM) {
          if (step.k >= memory.size()) return kKill;
          value = memory[step.k];
        } else if (BPF_MODE(step.code) != BPF_IMM) {
          return kKill;
        }
        (BPF_CLASS(step.code) == BPF_LD ? a : x) = value;
        break;
      }
      case BPF_ST:
      case BPF_STX:
        if (step.k >= memory.size()) return kKill;
        memory[step.k] = BPF_CLASS(step.code) == BPF_ST ? a : x;
        break;
      case BPF_ALU: {
        const auto value = calculated(BPF_OP(step.code), a, operand);
        if (!value) return kKill;
        a = *value;
        break;
      }
      case BPF_JMP:
        at += BPF_OP(step.code) == BPF_JA ? step.k : is_true(BPF_OP(step.code), a, operand) ? step.jt : step.jf;
        break;
      case BPF_RET:
        return BPF_RVAL(step.code) == BPF_A ? a : step.k;
      default:  // BPF_MISC
        (BPF_MISCOP(step.code) == BPF_TAX ? x : a) = BPF_MISCOP(step.code) == BPF_TAX ? a : x;
    }
  }
  return kKill;
}

std::string forbidden_call(std::span<const std::vector<sock_filter>> filters) {
  for (const Need& need : kNeeds) {
    seccomp_data call{};
    call.nr = need.number;
    call.arch = kArchitecture;
    call.args[0] = need.first;
    call.args[2] = need.third;
    for (const std::vector<sock_filter>& filter : filters) {
      const std::uint32_t answer = run_filter(filter, call);
      const std::uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
      if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || (need.may_be_unknown && answer == kUnknownCall))
        continue;
      return std::string(need.name);
    }
  }
  return {};
}

Result<std::vector<std::vector<sock_filter>>> filters_of(pid_t tid) {
  std::vector<std::vector<sock_filter>> filters;
  while (filters.size() < kMostFilters) {
    // The kernel counts from the one that was set last; the first call says how long it is.
    auto* const number = reinterpret_cast<void*>(filters.size());  // NOLINT(performance-no-int-to-ptr)
    const long length = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, nullptr);
    if (length < 0 && errno == ENOENT) return filters;
    std::vector<sock_filter> filter(length > 0 ? static_cast<std::size_t>(length) : 0);
    if (length <= 0 || ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, filter.data()) != length)
      return environment_error(
          "its system calls are restricted (seccomp), and how cannot be read: " + errno_text(errno),
          std::to_string(tid),
          "run as root on the host, or run it without a seccomp profile (containers: "
          "--security-opt seccomp=unconfined)");
    filters.push_back(std::move(filter));
  }
  return environment_error("its system calls are restricted by too many filters (seccomp)", std::to_string(tid));
}

}  // namespace culprit::record::inject
