#include "record/syscalls/answer_windows.h"

#include <algorithm>
#include <utility>

namespace culprit::record::syscalls {

AnswerWindows::AnswerWindows(Ns begin, std::uint32_t seed, std::optional<double> few)
    : start_(begin), random_(seed), few_(few), begin_(begin), opened_(begin) {}

AnswerWindows::Due AnswerWindows::due(Ns now) const {
  const auto at = next();
  return !at || now < *at ? Due::nothing : opened_ ? Due::close : Due::open;
}

std::optional<Ns> AnswerWindows::next() const {
  if (!opened_) return open_at_;
  return whole_ ? std::nullopt : close_at_;
}

void AnswerWindows::opened(Ns at) {
  opened_ = at;
  open_at_.reset();
  close_at_ = at + kWindow;
}

void AnswerWindows::closed(Ns at) {
  looked_ += at - opened_.value_or(at);
  opened_.reset();
}

void AnswerWindows::counted(Ns at, double answers, bool last_long) {
  answers_ += answers;
  if (at - begin_ < kPeriod / 2) return;
  const double most = few_.value_or(0) * (whole_ ? 1 : kFewAgain);
  const double rate = std::exchange(answers_, 0) / static_cast<double>(at - begin_) * 1e9;
  const bool was_whole = whole_;
  whole_ = !few_ || rate <= most || last_long;
  begin_ = at;
  if (was_whole) close_at_ = at;
  const Ns later = whole_ ? 0 : std::uniform_int_distribution<Ns>(0, kPeriod - kWindow)(random_);
  if (!whole_ || !opened_) open_at_ = at + later;
}

double AnswerWindows::share(Ns at) const {
  const Ns looked = looked_ + (opened_ ? at - *opened_ : 0);
  return std::clamp(static_cast<double>(looked) / static_cast<double>(std::max<Ns>(at - start_, 1)), 0.0, 1.0);
}

}  // namespace culprit::record::syscalls
