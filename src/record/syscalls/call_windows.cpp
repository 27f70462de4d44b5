#include "record/syscalls/call_windows.h"

#include <algorithm>
#include <cmath>

namespace culprit::record::syscalls {

namespace {

double ratio(Ns of, Ns to) { return static_cast<double>(of) / static_cast<double>(std::max<Ns>(to, 1)); }

}  // namespace

CallWindows::CallWindows(Ns begin, std::uint32_t seed)
    : start_(begin), random_(seed), begin_(begin), open_at_(begin), close_at_(begin + kWindow), end_(begin + kWindow) {}

CallWindows::Due CallWindows::due(Ns now) const {
  if (opened_ == 0) return now >= open_at_ ? Due::open : Due::nothing;
  if (closed_ == 0) return now >= close_at_ ? Due::close : Due::nothing;
  return now >= end_ ? Due::count : Due::nothing;
}

Ns CallWindows::next() const { return opened_ == 0 ? open_at_ : closed_ == 0 ? close_at_ : end_; }

void CallWindows::opened(Ns at) {
  opened_ = at;
  close_at_ = at + (close_at_ - open_at_);
  scale_ = ratio(end_ - begin_, close_at_ - at);
}

void CallWindows::closed(Ns at) {
  closed_ = at;
  covered_ += at - opened_;
  if (timed()) timed_ += at - opened_;
  scale_ = ratio(end_ - begin_, at - opened_);
}

void CallWindows::end_period(Ns at) {
  if (closed_ != 0) scale_ = ratio(at - begin_, closed_ - opened_);
}

void CallWindows::counted(Ns at, double calls) {
  if (periods_ > 0) {
    const double rate = calls / ratio(at - begin_, 1);
    const double before = rate - mean_;
    mean_ += before / static_cast<double>(++rates_);
    squares_ += before * (rate - mean_);
  }
  ++periods_;
  begin_period(at);
}

void CallWindows::begin_period(Ns at) {
  const Ns length = timed() ? kTimedWindow : kWindow;
  begin_ = at;
  open_at_ = at + std::uniform_int_distribution<Ns>(0, kPeriod - length)(random_);
  close_at_ = open_at_ + length;
  end_ = at + kPeriod;
  opened_ = closed_ = 0;
}

double CallWindows::part(Ns at) const { return ratio(at - begin_, kPeriod); }

double CallWindows::share(Ns at) const { return ratio(covered_, at - start_); }
double CallWindows::timed_share(Ns at) const { return ratio(timed_, at - start_); }

std::optional<double> CallWindows::error() const {
  constexpr std::size_t kFewest = 4;
  if (rates_ < kFewest || mean_ <= 0) return std::nullopt;
  const auto n = static_cast<double>(rates_);
  return 1.96 * std::sqrt(squares_ / (n - 1) / n) / mean_;
}

}  // namespace culprit::record::syscalls
