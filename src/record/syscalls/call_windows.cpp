#include "record/syscalls/call_windows.h"

#include <algorithm>
#include <cmath>

namespace culprit::record::syscalls {

namespace {

double ratio(Ns of, Ns to) { return static_cast<double>(of) / static_cast<double>(std::max<Ns>(to, 1)); }

}  // namespace

CallWindows::CallWindows(Ns begin, std::uint32_t seed, double few)
    : start_(begin),
      few_(few),
      random_(seed),
      whole_(few > 0),
      begin_(begin),
      open_at_(begin),
      close_at_(begin + (whole_ ? kPeriod : kWindow)),
      end_(close_at_) {}

CallWindows::Due CallWindows::due(Ns now) const {
  if (!opened_) return now >= open_at_ ? Due::open : Due::nothing;
  if (!closed_ && !whole_) return now >= close_at_ ? Due::close : Due::nothing;
  return now >= end_ ? Due::count : Due::nothing;
}

Ns CallWindows::next() const { return !opened_ ? open_at_ : !closed_ && !whole_ ? close_at_ : end_; }

void CallWindows::opened(Ns at) {
  opened_ = at;
  close_at_ = at + (close_at_ - open_at_);
  end_ = std::max(end_, close_at_);
  length_ = close_at_ - at;
  scale_ = is_first_whole() ? 1 : ratio(end_ - begin_, close_at_ - at);
}

void CallWindows::cover(Ns until) {
  length_ = until - *opened_;
  covered_ += length_;
  if (timed()) timed_ += length_;
  scale_ = ratio(end_ - begin_, length_);
}

void CallWindows::closed(Ns at) {
  closed_ = at;
  cover(at);
}

void CallWindows::end_period(Ns at) {
  if (!opened_) return;
  if (!closed_) cover(at);
  length_ = closed_.value_or(at) - *opened_;
  scale_ = ratio(at - begin_, length_);
  if (is_first_whole()) scale_ = 1;
}

bool CallWindows::end_recording(Ns at) {
  end_period(at);
  return opened_ && (periods_ == 0 || whole_ || length_ >= kWindow / 2);
}

void CallWindows::counted(Ns at, double calls, double doubt) {
  const double rate = calls / ratio(at - begin_, 1);
  calls_ += calls;
  doubt_ += doubt;
  if (periods_ > 0 && !whole_) {
    sampled_ += at - begin_;
    if (rate_) {
      // Of two estimates both are wrong, beside a period that was counted whole one.
      squares_ += (rate - *rate_) * (rate - *rate_) / (rate_is_sure_ ? 1 : 2);
      ++differences_;
    }
  }
  rate_ = rate;
  rate_is_sure_ = whole_ || periods_ == 0;
  const bool is_known = whole_ || periods_ == 0;
  ++periods_;
  last_ = at - begin_;
  whole_ = rate * 1e9 <= (is_known ? few_ : few_ * kFewAgain) && few_ > 0;
  begin_period(at);
}

void CallWindows::end(Ns at) {
  if (periods_ > 0 && !whole_) sampled_ += at - begin_;
}

void CallWindows::begin_period(Ns at) {
  const bool goes_on = is_open();
  timed_period_ = whole_ || goes_on || periods_ % kTimedEvery == 0;
  const Ns length = whole_ ? kPeriod : timed_period_ ? kTimedWindow : kWindow;
  begin_ = at;
  // A window that was open all the time is shut where it stands.
  open_at_ = at + (whole_ || goes_on ? 0 : std::uniform_int_distribution<Ns>(0, kPeriod - length)(random_));
  close_at_ = open_at_ + length;
  end_ = at + kPeriod;
  opened_.reset();
  closed_.reset();
  if (goes_on) opened(at);
}

double CallWindows::part(Ns at) const { return ratio(at - begin_, last_); }

double CallWindows::share(Ns at) const { return std::min(1.0, ratio(covered_, at - start_)); }
double CallWindows::timed_share(Ns at) const { return std::min(1.0, ratio(timed_, at - start_)); }

std::optional<double> CallWindows::error() const {
  constexpr std::size_t kFewest = 4;
  if (differences_ < kFewest || calls_ <= 0) return std::nullopt;
  const auto n = static_cast<double>(differences_);
  const double variance = squares_ / n;
  return std::hypot(1.96 * std::sqrt(variance / (n + 1)) * ratio(sampled_, 1), doubt_) / calls_;
}

}  // namespace culprit::record::syscalls
