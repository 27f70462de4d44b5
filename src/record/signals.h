// Signals that ask a recording to end, as a descriptor to wait on instead of handlers.
#pragma once

#include <csignal>

#include "core/error.h"

namespace culprit::record {

/// Whether this process ignores a signal, as nohup(1) makes it ignore SIGHUP.
bool is_ignored(int number);

/// While it lives SIGINT, SIGTERM and, unless it is ignored, SIGHUP do not end this process but make fd() readable
/// (signalfd(2)).
class StopSignals {
 public:
  static Result<StopSignals> take();
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  StopSignals() = default;
  int fd_ = -1;
  sigset_t before_{};
};

/// From now on this process gets SIGTERM when nobody can write into the pipe of this descriptor any more, whatever
/// ended who could, or when somebody does; at once, where nobody can already. Programs that are executed do not inherit
/// it. Errors: it is not the end of a pipe that is read.
Status stop_with_pipe(int pipe);

/// One signal that arrived.
struct StopSignal {
  int number = 0;
  bool from_terminal = false;  ///< everybody on the terminal got it, a started command too
};

/// Takes the next signal from a descriptor of StopSignals, or from a pipe that somebody wrote to (number 0 then).
/// Does not block when it is readable.
StopSignal take_signal(int fd);

}  // namespace culprit::record
