// When requests are looked at that come to the targets: always while they are few; while they are many in a short
// window in every quarter of a second. How many answers there were is known outside of them, too (answer_estimate.h).
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "core/units.h"

namespace culprit::record::syscalls {

class AnswerWindows {
 public:
  static constexpr Ns kPeriod = 250'000'000;
  static constexpr Ns kWindow = 50'000'000;
  /// Where there were many, there must be as few as this share of what is few, to look at all of them again.
  static constexpr double kFewAgain = 0.5;

  enum class Due { nothing, open, close };

  /// Up to `few` a second all are looked at; nullopt: however many. The first period is whole.
  AnswerWindows(Ns begin, std::uint32_t seed, std::optional<double> few);

  [[nodiscard]] Due due(Ns now) const;
  /// When something is due next; nullopt: not before the period ends.
  [[nodiscard]] std::optional<Ns> next() const;
  void opened(Ns at);
  void closed(Ns at);
  /// There were so many more; a window that is open goes on. Where this ends a period due() tells then how the next one
  /// begins. `last_long`: answers take too long for windows, and all are looked at however many they are.
  void counted(Ns at, double answers, bool last_long = false);
  /// All of this period is looked at.
  [[nodiscard]] bool is_whole() const { return whole_; }
  /// Of the time until `at`.
  [[nodiscard]] double share(Ns at) const;

 private:
  Ns start_ = 0;
  std::mt19937 random_;
  std::optional<double> few_;
  bool whole_ = true;
  Ns begin_ = 0;               // of the period
  double answers_ = 0;         // in it
  std::optional<Ns> open_at_;  // nullopt: it had its window
  std::optional<Ns> close_at_;
  std::optional<Ns> opened_;
  Ns looked_ = 0;  // so long in windows that are closed
};

}  // namespace culprit::record::syscalls
