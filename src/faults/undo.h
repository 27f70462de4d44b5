// What has to be done to bring the machine back, as data: the same list is executed by the injector, by its guard after
// the injector was killed, and from a state file after both were killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::faults {

/// One step back. `args` by kind:
/// continue_process: pid, start time (field 22 of /proc/PID/stat) · leave_cgroup: own cgroup, cgroup to return to ·
/// remove_file: path · remove_directory: path, only when empty · write_file: path, text · command: argv ·
/// remove_queue: the program tc, network interface, handle of the queue to remove (no other is removed).
struct Undo {
  enum class Kind : std::uint8_t {
    continue_process,
    leave_cgroup,
    remove_file,
    remove_directory,
    write_file,
    command,
    remove_queue
  };
  Kind kind = Kind::remove_file;
  std::vector<std::string> args;
  friend bool operator==(const Undo&, const Undo&) = default;
};

/// Takes one step back. Gives what went wrong, or nothing; a step whose object is gone already (a process that ended,
/// a file that is not there) is done.
std::optional<std::string> execute(const Undo& undo);
/// All steps, the last one first; goes on after a failed one. Gives what went wrong.
std::vector<std::string> execute_all(const std::vector<Undo>& undos);

/// One step as bytes and back; fields are separated by NUL, which no path and no argument can hold. Decoding gives
/// nothing for what encode() cannot have made.
std::string encode(const Undo& undo);
std::optional<Undo> decode(std::string_view bytes);

/// What a person is told about the step: "continue process 812".
std::string describe(const Undo& undo);

}  // namespace culprit::faults
