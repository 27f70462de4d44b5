#include "ab/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/file.h"
#include "core/units.h"
#include "faults/files.h"
#include "record/collector/cgroups.h"

namespace culprit::ab {

namespace {

/// Bytes.
struct Memory {
  std::int64_t all = 0;
  std::int64_t left = 0;
};

std::optional<Memory> memory_of_machine(const std::string& root) {
  constexpr std::int64_t kUnit = 1024;
  const auto text = read_file(root + "/proc/meminfo");
  if (!text) return std::nullopt;
  const auto all = faults::number_after(*text, "MemTotal:");
  const auto left = faults::number_after(*text, "MemAvailable:");
  if (!all || !left) return std::nullopt;
  return Memory{*all * kUnit, *left * kUnit};
}

/// nullopt: it has no limit.
std::optional<Memory> memory_of_group(const std::string& folder, bool v2) {
  const auto limit = faults::read_number(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = faults::read_number(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return std::nullopt;
  std::int64_t files = 0;
  if (const auto text = read_file(folder + "/memory.stat"))
    for (const char* const list : {"active_file", "inactive_file"})
      files += faults::number_after(*text, fmt::format("{}{}", v2 ? "" : "total_", list)).value_or(0);
  return Memory{*limit, *limit - std::max<std::int64_t>(0, *used - files)};
}

Status enough(const Memory& memory, const std::string& where, const char* remedy) {
  constexpr std::int64_t kLeast = 50;  // of so many parts, one
  if (memory.left >= memory.all / kLeast) return {};
  const auto left = static_cast<double>(std::max<std::int64_t>(0, memory.left));
  return environment_error(fmt::format("only {} of memory are left while both sides run", format_bytes(left)), where,
                           remedy);
}

}  // namespace

Status enough_memory(const std::vector<pid_t>& processes, const std::string& root) {
  const auto machine = memory_of_machine(root);
  if (machine)
    if (Status status = enough(*machine, "/proc/meminfo", "compare smaller ones, or on a machine with more memory");
        !status)
      return status;
  const auto mounts = record::parse_cgroup_mounts(read_beginning(root + "/proc/self/mountinfo").value_or(""), root);
  for (const pid_t pid : processes) {
    const auto text = read_file(fmt::format("{}/proc/{}/cgroup", root, pid));
    if (!text) continue;
    const record::CgroupFolders groups = record::find_cgroups(*text, mounts);
    for (const std::string& folder : groups.memory) {
      const auto memory = memory_of_group(folder, groups.memory_v2);
      // Version 1 has a number for no limit, too.
      if (!memory || (machine && memory->all >= machine->all)) continue;
      if (Status status =
              enough(*memory, folder, "compare smaller ones, or give the control group of the sides more memory");
          !status)
        return status;
    }
  }
  return {};
}

}  // namespace culprit::ab
