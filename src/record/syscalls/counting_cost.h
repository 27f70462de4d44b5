// Being counted takes time from who is counted: a thread that does nothing but short calls makes a third fewer of them
// inside a window than outside (dd bs=1: 1.6 against 2.5 million a second). What a window saw of such a thread stands
// for more calls than it holds.
//
// A thread that makes n calls in a window W, each longer by c, had W - n c for itself. If it had a CPU or waited for
// one all the time, it makes n W / (W - n c) of them in the same time unseen. If it waited for others, it makes as
// many: it waited less. Between the two nobody can tell; half of the difference is doubt and belongs into the error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/units.h"

namespace culprit::record::syscalls {

/// Share of a window that counting took: cost x calls / window, at most kMostTaken; 0 when it is below kLeastTaken.
inline constexpr double kLeastTaken = 0.01;
inline constexpr double kMostTaken = 0.9;
double taken_by_counting(double calls, double cost_ns, Ns window);

/// How many calls one that was counted stands for in the time nobody counts, and how wrong that may be.
struct Unseen {
  double factor = 1;
  double doubt = 0;
};
/// `busy`: share of the time in which the thread had a CPU or waited for one; unknown is taken for all of it, because
/// who makes that many calls does little else.
Unseen unseen_calls(double taken, std::optional<double> busy);

/// How busy the few threads are from which counting took something lately.
class BusyThreads {
 public:
  using Thread = std::pair<std::int32_t, std::int32_t>;  ///< process, thread

  /// `thread` is to be looked after until the next look() but one.
  void watch(Thread thread) { threads_.try_emplace(thread).first->second.watched = true; }
  /// Reads the totals of those that are looked after (/proc/PID/task/TID/schedstat).
  void look(Ns now);
  /// Between the last two looks.
  [[nodiscard]] std::optional<double> busy(Thread thread) const;

 private:
  struct Known {
    bool watched = false;
    Ns at = 0;
    std::optional<std::int64_t> busy_ns;
    std::optional<double> share;
  };
  std::map<Thread, Known> threads_;
};

/// Time that a thread ran and waited to run since it started, from the text of its schedstat.
std::optional<std::int64_t> parse_busy(std::string_view schedstat);

}  // namespace culprit::record::syscalls
