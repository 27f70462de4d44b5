// Where a thread may be made to call dlopen(): it must not be inside of the memory allocator, the loader or the making
// of threads.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <string>
#include <vector>

#include "record/collector/mappings.h"

namespace culprit::record::inject {

/// Code in which no thread may be borrowed while it runs there: the C library and its threads, the loader, the kernel's
/// page.
bool is_guarded(const Mapping& mapping);

/// Whether a thread that was stopped with these registers may be borrowed.
bool is_safe(const user_regs_struct& registers, const std::vector<Mapping>& code);

/// Threads of a process in the order in which to try them: those that wait for something first. `proc` is /proc.
std::vector<std::int64_t> threads_to_try(std::int64_t pid, const std::string& proc = "/proc");

}  // namespace culprit::record::inject
