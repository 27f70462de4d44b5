// What must be known of a process before a thread of it is stopped: whether it may be touched, and where in it the
// functions lie that the agent needs.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/error.h"
#include "record/collector/mappings.h"
#include "record/inject/inject.h"
#include "record/inject/others.h"

namespace culprit::record::inject {

/// Addresses in the process.
struct Process {
  std::vector<Mapping> code;
  std::vector<Range>
      writable;   ///< memory, in which the stacks are; a thread that is stopped would wait for reading that
  Traces traces;  ///< of other recorders
  std::vector<Range> allocators;   ///< code of one that is not the C library's
  bool has_own_allocator = false;  ///< one is in the program itself
  std::uint64_t dlopen = 0;
  std::uint64_t dlopen_flags = 0;
  std::uint64_t dlsym = 0;
  std::uint64_t pthread_create = 0;
  std::uint64_t pthread_detach = 0;
  std::uint64_t system_call = 0;                ///< `syscall; ret`
  std::uint64_t sigreturn = 0;                  ///< `mov $15, %rax; syscall`
  std::optional<std::uint64_t> resident_begin;  ///< culprit_agent_begin of this very agent, which is loaded already
};

/// What a thread may ask of the kernel; filters belong to threads.
enum class SystemCalls : std::uint8_t { all, filtered, few };
SystemCalls system_calls_of(std::int64_t pid, std::int64_t tid);

/// Refuses what may not be touched; not what somebody traces. One that is stopped is waited for, a second at most.
Result<Process> look_at(std::int64_t pid, const Agent& agent, const std::stop_token& given_up = {});

/// The refusal of a process that is traced by process `tracer`.
Error traced_by(std::int64_t pid, std::int64_t tracer);

}  // namespace culprit::record::inject
