// One disturbance from its checks to the restored machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "faults/injector.h"

namespace culprit::faults {

/// What was injected: the ground truth of an experiment.
struct Report {
  std::string fault;
  double severity = 0;
  ProcessId target;        ///< 0: none
  std::string what;        ///< for people
  Ns begin_monotonic = 0;  ///< from here on it acts
  Ns end_monotonic = 0;    ///< everything is restored
  Ns begin_unix = 0;
  Ns end_unix = 0;
  std::string ended_by;  ///< duration, signal, target_ended, guard_lost
  std::vector<Figure> figures;
  std::vector<std::string> not_restored;  ///< what could not be undone
};

struct Hooks {
  /// Called once, when the fault acts; `until` is CLOCK_REALTIME.
  std::function<void(const Report& so_far, Ns until, pid_t guard)> began;
  /// Called about once a second.
  std::function<void(const Injector&, Ns elapsed, Ns duration)> progress;
};

/// Checks, injects, waits for the duration, a signal (INT, TERM, HUP, QUIT, TSTP) or the end of the target, restores.
/// Call while this process has one thread: the guard is forked, and the signals are blocked meanwhile. Error: refused,
/// or it failed after a start; the machine is restored in either case.
Result<Report> inject(const Request& request, const Hooks& hooks);

}  // namespace culprit::faults
