// Whether a process whose system calls are restricted by filters (as those of containers are) may do what the agent
// does: the filters are read from the kernel and asked, before anything in the process is changed.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::record::inject {

/// What a filter answers to a call: SECCOMP_RET_ALLOW, ... As the kernel runs it; a filter that the kernel would not
/// take kills.
std::uint32_t run_filter(std::span<const sock_filter> filter, const seccomp_data& call);

/// The first system call that the agent makes, or the loader for it, and that one of the filters does not let pass;
/// empty: they let all of them pass. Calls that glibc does without (clone3, rseq) may fail as unknown.
std::string forbidden_call(std::span<const std::vector<sock_filter>> filters);

/// The filters of a thread that is stopped by ptrace. Needs CAP_SYS_ADMIN, and a kernel with CONFIG_CHECKPOINT_RESTORE.
Result<std::vector<std::vector<sock_filter>>> filters_of(pid_t tid);

}  // namespace culprit::record::inject
