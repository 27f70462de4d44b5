// Being counted takes time from who is counted: a thread that does nothing but short calls makes a third fewer of them
// inside a window than outside (dd bs=1: 1.6 against 2.5 million a second). What a window saw of such a thread stands
// for more calls than it holds.
//
// A thread that makes n calls in a window, each longer by c, and had a CPU for R of it, had R - n c for itself. If it
// ran or waited for a CPU all the time, it makes n R / (R - n c) of them in the same time unseen. If it waited for
// others, it makes as many: it waited less. Between the two nobody can tell; half of the difference is doubt and
// belongs into the error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/units.h"

namespace culprit::record::syscalls {

/// Share of a window that counting took: cost x calls / window; 0 when it is below kLeastTaken.
inline constexpr double kLeastTaken = 0.01;
double taken_by_counting(double calls, double cost_ns, Ns window);

/// How many calls one that was counted stands for in the time nobody counts, and how wrong that may be.
struct Unseen {
  double factor = 1;
  double doubt = 0;
};
/// What a thread did, as shares of the time.
struct Busy {
  double running = 1;
  double queued = 0;
};
/// `busy` unknown: the thread ran all the time, because who makes that many calls does little else. Of what it ran
/// counting took at most kMostTaken.
inline constexpr double kMostTaken = 0.8;
Unseen unseen_calls(double taken, const std::optional<Busy>& busy);

/// Since a thread started.
struct BusyTotals {
  Ns running = 0;
  Ns queued = 0;
};
/// From the text of its schedstat.
std::optional<BusyTotals> parse_busy(std::string_view schedstat);

/// How busy the few threads are from which counting took something lately.
class BusyThreads {
 public:
  using Thread = std::pair<std::int32_t, std::int32_t>;  ///< process, thread

  /// `thread` is to be looked after until the next look() but one.
  void watch(Thread thread) { threads_.try_emplace(thread).first->second.watched = true; }
  /// Reads the totals of those that are looked after (/proc/PID/task/TID/schedstat).
  void look(Ns now);
  /// Between the last two looks.
  [[nodiscard]] std::optional<Busy> busy(Thread thread) const;

 private:
  struct Known {
    bool watched = false;
    Ns at = 0;
    std::optional<BusyTotals> totals;
    std::optional<Busy> busy;
  };
  std::map<Thread, Known> threads_;
};

}  // namespace culprit::record::syscalls
