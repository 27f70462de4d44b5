// Other recorders of a process: those that are at work in it, and what killed ones left there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "record/collector/agent_name.h"

namespace culprit::record::inject {

inline const std::string kRingName = "culprit-ring";  ///< of the files in memory that a process shares with recorders

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What recorders have in a process, or had.
struct Traces {
  std::vector<std::uint64_t> descriptors;
  std::vector<Range> stacks;             ///< that threads were borrowed with
  std::vector<std::uint64_t> libraries;  ///< where agents are loaded, in order; they stay
  std::vector<std::uint64_t> rings;      ///< memory that an agent and its recorder share
};

Traces traces_in(std::int64_t pid, const std::string& proc = "/proc");

/// Whether a descriptor of the process is still a file in memory of that name.
bool is_memory_called(std::int64_t pid, std::uint64_t descriptor, std::string_view name);

/// The process that traces any thread of `pid`, but for thread `own` of this one; 0: nobody.
std::int64_t tracer_of(std::int64_t pid, std::int64_t own, const std::string& proc = "/proc");

/// Whether the thread is one no more.
bool has_ended(std::int64_t pid, std::int64_t tid);

/// An error, with the reason, when an agent is there, which one recorder at a time may have.
Status has_no_agent(std::int64_t pid, const Traces& traces);

}  // namespace culprit::record::inject
