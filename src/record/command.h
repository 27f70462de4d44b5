// A program started to be recorded. It waits at a pipe until the collectors are ready, so that nothing of it is missed,
// and is an ordinary child from then on: whatever becomes of the recorder, it runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace culprit::record {

/// What a command took that has ended.
struct CommandUse {
  Ns run = 0;  ///< from its start until its end was noticed
  Ns cpu = 0;  ///< of it and of all children that it waited for
};

class Command {
 public:
  /// Starts a process that waits. It keeps this process's standard files, but that `error_output`, an open descriptor,
  /// is its standard error where it is not -1; `environment` ("NAME=value") is added to or replaces what it inherits.
  /// Errors: no process can be made.
  static Result<Command> prepare(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                                 int error_output = -1);
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  /// A process that still waits ends; one that runs is left alone.
  ~Command();

  [[nodiscard]] std::int64_t pid() const { return pid_; }
  /// Lets it execute the program. Error: that cannot be executed.
  Status go();
  /// Its wait status once it has ended, else nothing; never blocks.
  std::optional<int> ended();
  /// Notes that it has ended now, which is what use() counts; ended() takes its status later.
  void note_end(Ns now) {
    if (end_ == 0) end_ = now;
  }
  /// Readable when it has ended; -1 where the kernel gives no such descriptor.
  [[nodiscard]] int descriptor() const { return end_fd_; }
  /// After ended() gave a status.
  [[nodiscard]] CommandUse use() const { return use_; }
  void signal(int number) const;

 private:
  Command() = default;
  std::string name_;
  std::int64_t pid_ = -1;
  int go_fd_ = -1;     // closed without a word: the child gives up
  int error_fd_ = -1;  // errno of a failed exec; closed by a successful one
  int end_fd_ = -1;
  Ns begin_ = 0;
  Ns end_ = 0;
  CommandUse use_;
  std::optional<int> status_;
};

/// Exit code of a shell for a wait status: the program's own, or 128 + signal.
int exit_code_of(int wait_status);

}  // namespace culprit::record
