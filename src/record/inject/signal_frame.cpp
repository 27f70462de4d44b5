#include "record/inject/signal_frame.h"

#if defined(__x86_64__)

#include <asm/sigcontext.h>
#include <asm/unistd.h>
#include <cpuid.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace culprit::record::inject {

namespace {

// The kernel's own numbers for the result of a call that is to be begun again (include/linux/errno.h); programs never
// see them.
constexpr long kRestartSys = -512, kRestartNoInterrupt = -513, kRestartNoHandler = -514, kRestartBlock = -516;
constexpr std::uint64_t kFpXstate = 1, kSigcontextSs = 2, kStrictRestoreSs = 4;  // uc_flags
constexpr std::size_t kAlign = 64;
constexpr std::size_t kLegacyBytes = 512, kHeaderBytes = 64;
constexpr std::size_t kSoftwareAt = 464;  // in the legacy area: what ptrace and signal frames say of its extent
constexpr std::uint64_t kTiles = std::uint64_t{1} << 18;  // only threads that asked have room for them

struct Context {
  std::uint64_t flags = 0;
  std::uint64_t link = 0;
  std::uint64_t stack = 0;
  std::uint32_t stack_flags = 0;
  std::uint32_t unused = 0;
  std::uint64_t stack_size = 0;
  sigcontext_64 machine{};
  std::uint64_t blocked = 0;
};
static_assert(sizeof(Context) == 304);

std::uint64_t word_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint64_t value = 0;
  if (bytes.size() >= at + sizeof value) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// How much of the state the kernel takes back: without the tiles where the thread has none.
std::size_t extent(std::span<const std::uint8_t> vectors) {
  const std::uint64_t enabled = word_at(vectors, kSoftwareAt);
  const std::uint64_t used = word_at(vectors, kLegacyBytes);
  if ((used & kTiles) != 0) return vectors.size();
  std::size_t end = kLegacyBytes + kHeaderBytes;
  for (unsigned feature = 2; feature < 63; ++feature) {
    if ((enabled >> feature & 1U) == 0 || (kTiles >> feature & 1U) != 0) continue;
    unsigned size = 0, offset = 0, c = 0, d = 0;
    __cpuid_count(0xd, feature, size, offset, c, d);
    end = std::max<std::size_t>(end, std::size_t{size} + offset);
  }
  return std::min(end, vectors.size());
}

}  // namespace

user_regs_struct going_on(const user_regs_struct& registers, bool interrupted) {
  user_regs_struct on = registers;
  const auto call = static_cast<long>(registers.orig_rax);
  const auto result = static_cast<long>(registers.rax);
  on.orig_rax = static_cast<unsigned long long>(-1);
  if (call < 0) return on;
  // Calls that were interrupted when their work was done, or goes on without them, are not begun a second time.
  const bool may_be_repeated = call != __NR_close && call != __NR_connect;
  const bool again = result == kRestartSys || result == kRestartNoInterrupt || result == kRestartNoHandler ||
                     result == kRestartBlock || (result == -EINTR && interrupted && may_be_repeated);
  if (!again) return on;
  on.rip -= 2;
  on.rax = static_cast<unsigned long long>(result == kRestartBlock ? __NR_restart_syscall : call);
  return on;
}

std::size_t frame_bytes(const ThreadState& state) {
  return sizeof(Context) + kAlign + state.vectors.size() + sizeof(std::uint32_t);
}

std::vector<std::uint8_t> signal_frame(const ThreadState& state, const user_regs_struct& r, std::uint64_t at) {
  const std::uint64_t vectors_at = (at + sizeof(Context) + kAlign - 1) / kAlign * kAlign;
  Context context;
  context.flags = kFpXstate | kSigcontextSs | kStrictRestoreSs;
  context.stack_flags = 0x10;  // no valid flags: the kernel leaves the alternate stack alone
  context.blocked = state.blocked;
  sigcontext_64& m = context.machine;
  m.r8 = r.r8;
  m.r9 = r.r9;
  m.r10 = r.r10;
  m.r11 = r.r11;
  m.r12 = r.r12;
  m.r13 = r.r13;
  m.r14 = r.r14;
  m.r15 = r.r15;
  m.di = r.rdi;
  m.si = r.rsi;
  m.bp = r.rbp;
  m.bx = r.rbx;
  m.dx = r.rdx;
  // A timed wait cannot be gone on with from here (the kernel forgets it in rt_sigreturn): it is begun anew.
  m.ax = r.rax == __NR_restart_syscall && r.orig_rax == static_cast<unsigned long long>(-1) &&
                 r.rip == state.registers.rip - 2
             ? state.registers.orig_rax
             : r.rax;
  m.cx = r.rcx;
  m.sp = r.rsp;
  m.ip = r.rip;
  m.flags = r.eflags;
  m.cs = static_cast<unsigned short>(r.cs);
  m.ss = static_cast<unsigned short>(r.ss);
  m.fpstate = vectors_at;

  const std::size_t bytes = extent(state.vectors);
  std::vector<std::uint8_t> frame(vectors_at - at + bytes + sizeof(std::uint32_t));
  std::memcpy(frame.data(), &context, sizeof context);
  std::uint8_t* vectors = frame.data() + (vectors_at - at);
  std::memcpy(vectors, state.vectors.data(), bytes);
  if (bytes > kLegacyBytes) {
    _fpx_sw_bytes extent_of{};
    extent_of.magic1 = FP_XSTATE_MAGIC1;
    extent_of.extended_size = static_cast<std::uint32_t>(bytes + sizeof(std::uint32_t));
    extent_of.xfeatures = word_at(state.vectors, kSoftwareAt);
    extent_of.xstate_size = static_cast<std::uint32_t>(bytes);
    std::memcpy(vectors + kSoftwareAt, &extent_of, sizeof extent_of);
    const std::uint32_t end = FP_XSTATE_MAGIC2;
    std::memcpy(vectors + bytes, &end, sizeof end);
  }
  return frame;
}

}  // namespace culprit::record::inject

#endif
