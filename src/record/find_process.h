// Processes by name: what a person types for the one of `ps`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/process_name.h"

namespace culprit::record {

/// A process that may be recorded.
struct FoundProcess {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::int64_t start_ticks = 0;  ///< since the machine started
  std::uint32_t user = 0;
  ProcessNames names;
};

/// All below `proc` but threads of the kernel, zombies, `own_pid` and the processes that it descends from (the shell,
/// sudo), by pid.
std::vector<FoundProcess> list_processes(const std::string& proc, std::int64_t own_pid);

/// Those that are called `name`: by comm, title, argv[0] without its folder, or the program's file. When none is, those
/// with a name that begins with it; else those with a name that holds it, in whatever case.
std::vector<FoundProcess> match_processes(const std::vector<FoundProcess>& all, std::string_view name);

/// Those of `matched` that descend from no other of them; `all` tells who descends from whom.
std::vector<FoundProcess> eldest(const std::vector<FoundProcess>& matched, const std::vector<FoundProcess>& all);

/// Whether `roots`, as eldest() gives them, belong together: there is one, or they have the same parent and that is not
/// the first process, which adopts.
bool is_family(const std::vector<FoundProcess>& roots);

}  // namespace culprit::record
