// What a recording counted over its whole time, beside slices and counters: how long system calls and requests to disks
// took, and in which functions its threads ran.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace culprit::model {

/// Calls of one name, or requests of one kind to one disk, of all recorded processes.
struct CountedDurations {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< of requests
  double total_ns = 0;
  std::vector<std::uint64_t> buckets;  ///< how they spread (stats/log_buckets.h); of those that were timed
  bool waits = false;                  ///< of a call that waits for work, time or others: its time says nothing
};

/// How long something lasted, and how often it was, in each window of a recording.
struct WindowSums {
  std::vector<double> ns;
  std::vector<double> count;
};

/// By two names: a function, or who woke the thread, and the system call of the wait; or a process and none.
using NamedSums = std::map<std::pair<std::string, std::string>, WindowSums>;

/// What the recorded threads waited for inside of their work: where they were blocked, who ended that, and who had the
/// CPUs while they were runnable. No value: the recording does not tell.
struct OffCpu {
  std::vector<double> seconds;     ///< of each window
  std::vector<double> steps;       ///< in each window, of one that lies in it in part that part; empty: there are none
  std::vector<std::size_t> first;  ///< window of the recording's work that each begins with, and where the last ends
  std::string shortest;            ///< wait that is told, ns, as the recording says it; empty: it does not
  std::optional<NamedSums> functions;  ///< by the innermost function that has a name
  std::optional<NamedSums> inputs;  ///< of the threads of steps, by the innermost function on the stack that is_input()
  std::map<NamedSums::key_type, std::map<std::string, double>> ended_by;  ///< of both: by whom, ns
  std::optional<NamedSums> wakers;                                        ///< by the name of the thread
  /// Waits that look as if for work, of threads whose work comes from elsewhere and whose process answers on
  /// connections: by the thread of the recorded programs that ended them.
  std::optional<NamedSums> handed;
  std::optional<NamedSums> rivals;  ///< by process, or by thread where it is not recorded
};

/// In which processes samples of a function were, by the time that they stand for.
struct SampledIn {
  double all = 0;
  double waiting = 0;  ///< of which a thread that works waits in futex
  double beside = 0;   ///< of which another such thread than its own does
  /// On threads that run the steps; kNoNumber: none is known.
  double in_steps = std::numeric_limits<double>::quiet_NaN();
};

struct Collected {
  double seconds = 0;                                   ///< of the recording, which calls and disks are counted over
  std::map<std::string, CountedDurations> calls;        ///< by name
  std::map<std::string, CountedDurations> disks;        ///< "vda write"
  std::map<std::string, CountedDurations> own_disks{};  ///< of these, what the recorded processes issued; no buckets
  std::uint64_t samples = 0;                            ///< that found a thread on a CPU
  std::size_t windows = 0;                              ///< in which there were any
  /// By innermost function, code without a name by its file, functions of Python without their line: share of the
  /// samples of each window, by the time that they stand for where that is known.
  std::map<std::string, std::vector<double>> functions;
  /// The same by the innermost function of Python, the native code that it called included.
  std::map<std::string, std::vector<double>> python;
  std::map<std::string, SampledIn> functions_in{};  ///< of `functions`
  std::map<std::string, SampledIn> python_in{};     ///< of `python`
  SampledIn sampled_in{};                           ///< all, but waits; 0: no threads of steps are known
  OffCpu off_cpu{};
};

}  // namespace culprit::model
