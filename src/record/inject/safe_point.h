// Where a thread may be made to call dlopen(): it must not be inside of the memory allocator, the loader or the making
// of threads.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/collector/mappings.h"
#include "record/inject/process.h"

namespace culprit::record::inject {

/// Code in which no thread may be borrowed while it runs there: the C library and its threads, the loader, the kernel's
/// page.
bool is_guarded(const Mapping& mapping);

/// Whether a thread that was stopped with these registers may be borrowed, as far as they tell.
bool is_safe(const user_regs_struct& registers, const std::vector<Mapping>& code);

/// Whether the words of a stack, from its pointer on, hold the frame of a signal: what was interrupted is not known.
bool is_in_handler(std::span<const std::uint64_t> stack, std::uint64_t sigreturn);

/// Whether a thread of `pid` that is stopped may be borrowed: neither it nor what it has interrupted is inside of an
/// allocator, also one of the program's own. Where the program itself holds one only a thread that waits may.
bool is_safe_now(std::int64_t pid, const user_regs_struct& registers, const Process& process);

inline constexpr std::size_t kMostThreadsToTry = 256;

/// Threads of a process, so many at most, in the order in which to try them: those that wait for something first.
/// `proc` is /proc.
std::vector<std::int64_t> threads_to_try(std::int64_t pid, const std::string& proc = "/proc");

}  // namespace culprit::record::inject
