// When system calls are looked at: always while they are few; while they are many in short windows, one at random in
// every quarter of a second. Outside of them nothing is attached and nobody pays. What was seen in a window stands for
// its quarter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "core/units.h"

namespace culprit::record::syscalls {

class CallWindows {
 public:
  static constexpr Ns kPeriod = 250'000'000;
  static constexpr Ns kWindow = 20'000'000;
  static constexpr Ns kTimedWindow = 30'000'000;
  static constexpr std::uint64_t kTimedEvery = 4;  ///< periods

  /// Where calls were many, they must be as few as this share of what is few, to be looked at always again.
  static constexpr double kFewAgain = 0.5;

  enum class Due { nothing, open, close, count };

  /// The first period is its window: what does not last longer is counted whole. It is as short as a window, or with
  /// `few` as long as the others, of which those are whole, too, in which there are up to `few` calls a second.
  CallWindows(Ns begin, std::uint32_t seed, double few = 0);

  [[nodiscard]] Due due(Ns now) const;
  /// When something is due next.
  [[nodiscard]] Ns next() const;
  /// Calls of this window are timed, too.
  [[nodiscard]] bool timed() const { return timed_period_; }
  /// When it was done. A recorder that comes late has a whole window all the same: the period ends later.
  void opened(Ns at);
  void closed(Ns at);
  /// The period ends; `calls` is what all of it was estimated to be, wrong by up to `doubt` of them the same way
  /// always.
  void counted(Ns at, double calls, double doubt = 0);
  /// The recording ends inside of a period.
  void end(Ns at);
  /// For how many calls one stands that was counted in the last window.
  [[nodiscard]] double scale() const { return scale_; }
  /// The same when the period ends at `at`.
  void end_period(Ns at);
  /// The recording ends in it. False: there was no window, or it had just begun and would stand for hundreds like
  /// itself.
  [[nodiscard]] bool end_recording(Ns at);
  [[nodiscard]] bool window_was() const { return opened_.has_value(); }
  /// How long the last window was.
  [[nodiscard]] Ns length() const { return length_; }
  /// Some period was not looked at whole: numbers are estimates.
  [[nodiscard]] bool estimates() const { return sampled_ > 0; }
  [[nodiscard]] bool is_open() const { return opened_ && !closed_; }
  /// Every call of this period is looked at, from its begin on.
  [[nodiscard]] bool is_whole() const { return whole_ && is_open(); }
  /// How much there has been of a period like the last one, at `at`.
  [[nodiscard]] double part(Ns at) const;

  /// Of the time until `at`.
  [[nodiscard]] double share(Ns at) const;
  [[nodiscard]] double timed_share(Ns at) const;
  /// Half of the 95 % interval of the number of calls, as a share of it, by how windows differ from the next ones: a
  /// load that begins, ends, or drifts is no error. Nothing with fewer than four.
  [[nodiscard]] std::optional<double> error() const;

 private:
  /// Who is started begins when all is attached: nothing was before.
  [[nodiscard]] bool is_first_whole() const { return whole_ && periods_ == 0; }
  void begin_period(Ns at);
  void cover(Ns until);

  Ns start_ = 0;
  double few_ = 0;
  std::mt19937 random_;
  bool whole_ = false;  // the window is the period, and is not closed with it
  bool timed_period_ = true;
  std::uint64_t periods_ = 0;  // before this one
  Ns last_ = kPeriod;          // how long the one before lasted
  Ns begin_ = 0;               // of the period, and so on
  Ns open_at_ = 0;
  Ns close_at_ = 0;
  Ns end_ = 0;
  std::optional<Ns> opened_;
  std::optional<Ns> closed_;
  double scale_ = 1;
  Ns length_ = 0;
  Ns covered_ = 0;
  Ns timed_ = 0;
  Ns sampled_ = 0;               // the time that windows stand for
  double calls_ = 0;             // of all periods
  double doubt_ = 0;             // calls
  std::optional<double> rate_;   // of the period before this one
  bool rate_is_sure_ = false;    // that one was counted whole
  std::size_t differences_ = 0;  // of neighbours' rates, and the sum of their squares
  double squares_ = 0;
};

}  // namespace culprit::record::syscalls
