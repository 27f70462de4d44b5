// What a process executes from, as /proc/PID/maps tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/collector/target_file.h"

namespace culprit::record {

/// A part of a process's memory that holds code.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< of `begin` in the file
  std::string path;          ///< as the process sees it; of no file: empty, or "[vdso]" and its like
  std::string identity;      ///< of the file: "08:01 1234", device and inode
};

/// By begin; empty when the process is gone. `proc` is /proc.
std::vector<Mapping> executable_mappings(std::int64_t pid, const std::string& proc = "/proc");

/// KiB of memory that a process may execute, as /proc/PID/status tells: reading it costs a hundredth of what the
/// mappings of a large program cost, and it changes whenever a library is loaded or unloaded. nullopt: not known.
std::optional<std::uint64_t> executable_kib(std::int64_t pid, const std::string& proc = "/proc");

/// The file of a mapping as the process sees it, which may live in a container; of a process that has ended, the file
/// of that name here, when it is the same one.
TargetFile open_mapped(std::int64_t pid, const Mapping& mapping);

}  // namespace culprit::record
