// What this machine lets a recording see, asked of the machine itself: `culprit doctor`.
//
// Facts come from files under a root and from a few attempts that are made beforehand (Attempts), so that the judgement
// can be tested on machines that nobody has at hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/prompt.h"

namespace culprit::record {

enum class CheckState : std::uint8_t { ok, limited, missing };
std::string_view to_string(CheckState state);

/// One line of the doctor.
struct Check {
  std::string group;  ///< "kernel", "permissions", "machine", "GPU", "output", "tools", "process"
  std::string key;    ///< stable, for JSON: "kernel.btf"
  std::string what;   ///< in words of the user
  CheckState state = CheckState::ok;
  std::string found;   ///< what was found, or why it is not ok
  std::string remedy;  ///< the command or setting that mends it; empty when ok
};

/// What was tried on the running machine. An errno of 0 means that it worked.
struct Attempts {
  std::uint32_t uid = 0;
  std::uint64_t capabilities = 0;  ///< effective, as in /proc/self/status
  std::string program;             ///< path of this program, for setcap
  int load_program = 0;            ///< errno of loading a two-instruction raw tracepoint program
  int open_perf = 0;               ///< errno of counting this process's context switches by perf_event_open
  Promptness promptness = Promptness::ordinary;  ///< what a recorder reached
  bool first_pid_namespace = true;
  std::uint64_t locked_memory = 0;  ///< soft limit in bytes; UINT64_MAX: none
  std::string folder;               ///< where a recording goes by default
  int write_folder = 0;             ///< errno of making a file there
  std::uint64_t folder_free = 0;    ///< bytes
  std::string cupti, cuda, nvml;    ///< path or name of what could be opened; empty: none
  std::string nsys, ncu;            ///< paths of the programs; empty: none
};

Attempts make_attempts();

/// Checks of the machine, in the order in which they are shown.
std::vector<Check> machine_checks(const std::string& root, const Attempts& attempts);

/// Checks of one process: does it exist, whose is it, is it in a container, what can be read of it, is it Python. The
/// first check is missing, and the only one, when there is no such process.
std::vector<Check> process_checks(const std::string& root, const Attempts& attempts, std::int64_t pid);

}  // namespace culprit::record
