// The frame from which the kernel restores a thread (rt_sigreturn): all registers, floating point and vectors, the mask
// of signals.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::record::inject {

/// What to restore.
struct ThreadState {
  user_regs_struct registers{};
  std::vector<std::uint8_t> vectors;  ///< NT_X86_XSTATE as ptrace gives it
  std::uint64_t blocked = 0;          ///< signals
};

/// The registers with which a thread that was stopped goes on by itself: a system call that the stop interrupted is
/// begun again. `interrupted`: no signal but the stop came in between.
user_regs_struct going_on(const user_regs_struct& registers, bool interrupted);

/// Bytes that one needs at most for `state`.
std::size_t frame_bytes(const ThreadState& state);

/// The frame for the address `at` (of struct ucontext; a multiple of 16). The thread's alternate signal stack stays as
/// it is.
std::vector<std::uint8_t> signal_frame(const ThreadState& state, const user_regs_struct& registers, std::uint64_t at);

}  // namespace culprit::record::inject
