// Being counted takes time from who is counted: a thread that does nothing but short calls makes a third fewer of them
// inside a window than outside (dd bs=1: 1.6 against 2.5 million a second), and where CPUs are short it may have had
// one for all of the window or for none of it. What a window saw of such a thread stands for more calls than it holds.
//
// A thread that made n calls in a window and ran for R of it, had R - n c for itself if counting a call takes c. If it
// ran for S outside of the window, it made n S / (R - n c) calls there: whether it waits for others, for a CPU, or for
// nobody, it makes as many in a second that it runs. Of a window in which it hardly ran, while it ran outside, nothing
// is concluded: the next one stands for both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "record/collector/collector.h"
#include "record/syscalls/run_clock.h"

namespace culprit::record::syscalls {

/// Time that counting took in a window, ns; 0 if that is less than this share of the window.
inline constexpr double kLeastTaken = 0.01;
double taken_by_counting(double calls, double cost_ns, Ns window);

/// How many calls that nobody counted one stands for that was counted, and how wrong that may be.
struct Unseen {
  double calls = 0;
  double doubt = 0;
};
/// How long a thread ran, in a window and in the rest of the time that the window stands for.
struct Ran {
  Ns inside = 0;
  Ns outside = 0;
};
/// Of what it ran inside, counting took at most this share.
inline constexpr double kMostTaken = 0.8;
/// `taken`: by counting, ns.
Unseen unseen_calls(double taken, const Ran& ran);

/// ns that a thread has run since it started, from the text of its schedstat.
std::optional<Ns> parse_running(std::string_view schedstat);

/// For how long the few threads ran from which counting took something lately.
class BusyThreads {
 public:
  using Thread = std::pair<std::int32_t, std::int32_t>;  ///< process, thread

  /// A thread is looked after for so many periods since counting took something from it.
  static constexpr int kPeriods = 8;
  /// From the next period on.
  void watch(Thread thread);

  /// At `at`, which may be known some time later only. `now`: when it is.
  void window_opened(Ns at, const std::function<Ns()>& now = monotonic_now);
  void window_closed(Ns at);
  /// A window that is open ends with it.
  void period_ended(Ns at);
  /// Of the period that ended and, outside, of those before it whose windows told nothing; 0 outside if this one tells
  /// nothing either. nullopt: not known.
  [[nodiscard]] std::optional<Ran> ran(Thread thread) const;
  /// `open`: its window began with it.
  void period_begins(bool open);

 private:
  struct Known {
    int periods = 0;                // left
    std::optional<RunClock> clock;  // of the window
    std::optional<Ns> begin, inside, end;
    Ns before = 0;  // outside, in periods whose windows told nothing
  };
  struct Times {
    Ns begin = 0;
    std::optional<Ns> opened, closed;
    Ns looked = 0;  // since then clocks run
    Ns end = 0;
  };
  [[nodiscard]] std::optional<Ran> ran(const Known& known) const;
  [[nodiscard]] bool tells(const Ran& ran) const;

  std::map<Thread, Known> threads_;
  Times times_;
};

}  // namespace culprit::record::syscalls
