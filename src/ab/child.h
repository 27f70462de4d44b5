// One recording, or one run of a command, in a process of its own: what the recorder holds (programs in the kernel,
// rings, tables of names) is gone with it, output of the command goes to a file, and two recordings can be made at
// once.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "faults/process.h"
#include "record/recorder.h"

namespace culprit::ab {

/// What the child does.
struct Work {
  record::RecordOptions record;                           ///< a command or processes, the output
  bool recorded = true;                                   ///< else the command is only run
  std::vector<record::python::FunctionSpec> functions{};  ///< of Python that are watched
  std::string text;       ///< file that gets what the command prints; empty: nobody does
  std::string directory;  ///< the command starts there; empty: here
  std::string temporary;  ///< its TMPDIR, absolute; empty: that of this process
};

/// What became of it.
struct Done {
  std::optional<int> exit_code;  ///< of a command that ended by itself
  record::CommandUse use;
  bool recorded = false;  ///< the file is there
  record::Ending ending = record::Ending::none;
};

class Child {
 public:
  /// Forks; call while this process has one thread. Error: no process can be made.
  static Result<Child> start(const Work& work);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  /// Asks it to end and waits.
  ~Child();

  /// Blocks until it records, or the command runs. Error: why it does not.
  Status wait_until_begun();
  /// Readable when it has something to say, or has ended.
  [[nodiscard]] int descriptor() const { return pipe_; }
  /// As Ctrl-C would: a recording is completed, a command is asked to end.
  void interrupt();
  /// Blocks until it has ended; of one that was interrupted, until all has that its command started, which is killed
  /// after kGrace. Error: why it failed.
  Result<Done> wait();
  static constexpr Ns kGrace = record::Recorder::kPatience;

 private:
  Child(pid_t pid, int pipe, bool has_command) : pid_(pid), pipe_(pipe), has_command_(has_command) {}
  pid_t pid_ = -1;
  int pipe_ = -1;
  bool has_command_ = false;
  std::vector<faults::ProcessId> family_;  // that the command was when it was interrupted
};

}  // namespace culprit::ab
