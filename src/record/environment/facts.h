// Facts about the machine and the targets that two runs are compared by before anything else.
//
// Only what is named here is taken: never arguments, never a variable outside of the allow-list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record {

/// One fact. Keys begin with "env." in the recording.
struct Fact {
  std::string key;
  std::string value;
};

/// Adds `key` unless the value is empty. Line breaks become blanks; values are cut at 512 bytes.
void add_fact(std::vector<Fact>& facts, std::string_view key, std::string_view value);

/// Kernel, CPUs, memory, settings, of the machine under `root`. `with_hostname`: its name too.
std::vector<Fact> host_facts(const std::string& root, bool with_hostname);

/// Limits, scheduling, container, libraries, packages and allowed variables of one process. Empty when it is gone.
std::vector<Fact> target_facts(const std::string& root, std::int64_t pid);

/// Driver and GPUs, from /proc/driver/nvidia and, when `root` is empty, NVML where that library is. Adds what is
/// missing to `sights`.
std::vector<Fact> nvidia_facts(const std::string& root, std::vector<Sight>& sights);

}  // namespace culprit::record
