// How many answers there were where requests are looked at in windows only: how often a process sends is known always,
// and how many answers that makes is known of the windows. A server that sends each answer at once is counted exactly.
#pragma once

namespace culprit::record::syscalls {

struct AnswerPeriod {
  double counted = 0;  ///< answers
  double sends = 0;
  double seen = 0;     ///< of those: in windows
  bool whole = false;  ///< all of it was one
};

struct AnswerEstimate {
  double lately_counted = 0;  ///< in the periods before, the older the less
  double lately_seen = 0;

  /// How many are counted in a period like those before.
  [[nodiscard]] double expected(const AnswerPeriod& period) const {
    return lately_seen > 0 ? period.seen * lately_counted / lately_seen : 0;
  }

  /// How many there were in the next one.
  double add(const AnswerPeriod& period) {
    constexpr double kKept = 0.75;  // a request that is under way at the edge of one window hides among several
    lately_counted = kKept * lately_counted + period.counted;
    lately_seen = kKept * lately_seen + period.seen;
    return period.whole || lately_seen <= 0 ? period.counted : period.sends * lately_counted / lately_seen;
  }
};

}  // namespace culprit::record::syscalls
