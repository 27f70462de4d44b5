// What a recording counted over its whole time, beside slices and counters: how long system calls and requests to disks
// took, and in which functions its threads ran.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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

struct Collected {
  double seconds = 0;                             ///< of the recording, which calls and disks are counted over
  std::map<std::string, CountedDurations> calls;  ///< by name
  std::map<std::string, CountedDurations> disks;  ///< "vda write"
  std::uint64_t samples = 0;                      ///< that found a thread on a CPU
  std::size_t windows = 0;                        ///< in which there were any
  /// By innermost function, code without a name by its file, functions of Python without their line: share of the
  /// samples of each window.
  std::map<std::string, std::vector<double>> functions;
  /// The same by the innermost function of Python, the native code that it called included.
  std::map<std::string, std::vector<double>> python;
};

}  // namespace culprit::model
