// How often a thread made a call and how long all of its calls took, from totals that grow: of calls that were counted
// some were not timed, and a call counts when it begins but has a time only when it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace culprit::record::syscalls {

struct CallEstimate {
  std::uint64_t count = 0;  ///< what the totals said last
  std::uint64_t timed = 0;
  std::uint64_t total_ns = 0;
  double calls = 0;  ///< estimated, as are all times
  double estimated_ns = 0;
  double without_time = 0;  ///< calls before the first that was timed
  double last_mean = 0;     ///< of those that were timed last

  /// Takes in newer totals; each call since the last ones stands for `scale`. Gives for how many all of those stand.
  double add(std::uint64_t new_count, std::uint64_t new_timed, std::uint64_t new_total_ns, double scale) {
    const auto now_timed = static_cast<double>(new_timed - timed);
    const auto time = static_cast<double>(new_total_ns - total_ns);
    if (now_timed > 0) last_mean = time / now_timed;
    const double more = scale * static_cast<double>(new_count - count);
    calls += more;
    const auto untimed = static_cast<std::int64_t>(count - timed);
    const auto new_untimed = static_cast<std::int64_t>(new_count - new_timed);
    if (scale == 1 && std::abs(new_untimed - untimed) <= 1) {
      // All were timed, but for one that goes on, or went on the last time.
      estimated_ns += time;
    } else {
      // Those that were not timed took as long as those that were timed last.
      const double all = std::max(without_time + more, now_timed);
      estimated_ns += last_mean * all;
      without_time = new_timed > 0 ? 0 : all;
    }
    count = new_count;
    timed = new_timed;
    total_ns = new_total_ns;
    return more;
  }
};

}  // namespace culprit::record::syscalls
