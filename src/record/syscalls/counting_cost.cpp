#include "record/syscalls/counting_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "core/file.h"

namespace culprit::record::syscalls {

namespace {

/// How wrong the measured cost of a call may be: other caches, other calls.
constexpr double kCostDoubt = 0.25;
/// A window in which a thread ran for less than this share of it, and of what it ran for outside, tells nothing of it.
constexpr double kTellingShare = 0.05;
constexpr double kTellingPart = 0.5;

/// Further threads are not known.
constexpr std::size_t kMostClocks = 64;

double share(Ns of, Ns to) { return static_cast<double>(of) / static_cast<double>(std::max<Ns>(to, 1)); }

}  // namespace

double taken_by_counting(double calls, double cost_ns, Ns window) {
  const double taken = calls * cost_ns;
  return window <= 0 || taken < kLeastTaken * static_cast<double>(window) ? 0 : taken;
}

Unseen unseen_calls(double taken, const Ran& ran) {
  if (ran.inside <= 0 || ran.outside <= 0) return {};
  const auto inside = static_cast<double>(ran.inside);
  const double counting = std::min(taken, kMostTaken * inside);
  const double calls = static_cast<double>(ran.outside) / (inside - counting);
  return {calls, kCostDoubt * counting / (inside - counting) * calls};
}

std::optional<Ns> parse_running(std::string_view schedstat) {
  std::istringstream text{std::string(schedstat)};
  Ns running = 0;
  if (!(text >> running) || running < 0) return std::nullopt;
  return running;
}

void BusyThreads::watch(Thread thread) { threads_[thread].periods = kPeriods; }

void BusyThreads::window_opened(Ns at, const std::function<Ns()>& now) {
  times_.opened = at;
  std::size_t clocks = 0;
  for (auto& [thread, known] : threads_)
    if (clocks++ < kMostClocks) known.clock.emplace(thread.second);
  times_.looked = now();
}

void BusyThreads::window_closed(Ns at) {
  times_.closed = at;
  const Ns window = at - times_.opened.value_or(at);
  const Ns seen = at - times_.looked;
  for (auto& [thread, known] : threads_) {
    const auto ran = known.clock ? known.clock->read() : std::nullopt;
    if (ran && 2 * seen > window) known.inside = static_cast<Ns>(static_cast<double>(*ran) * share(window, seen));
    known.clock.reset();
  }
}

void BusyThreads::period_ended(Ns at) {
  times_.end = at;
  for (auto& [thread, known] : threads_) {
    const auto text = read_beginning(fmt::format("/proc/{}/task/{}/schedstat", thread.first, thread.second));
    known.end = text ? parse_running(*text) : std::nullopt;
  }
  if (times_.closed || !times_.opened) return;
  if (*times_.opened > times_.begin) return window_closed(at);
  times_.closed = at;
  for (auto& [thread, known] : threads_)
    if (known.begin && known.end) known.inside = *known.end - *known.begin;
}

std::optional<Ran> BusyThreads::ran(const Known& known) const {
  if (!known.begin || !known.end || !times_.opened || !times_.closed) return std::nullopt;
  const Ns ran = *known.end - *known.begin;
  // Else as much as in the rest.
  const double of_window = share(*times_.closed - *times_.opened, times_.end - times_.begin);
  const Ns inside = known.inside.value_or(static_cast<Ns>(static_cast<double>(ran) * of_window));
  return Ran{inside, ran - inside};
}

bool BusyThreads::tells(const Ran& ran) const {
  const Ns window = *times_.closed - *times_.opened;
  const double inside = share(ran.inside, window);
  return inside >= kTellingShare || inside >= kTellingPart * share(ran.outside, times_.end - times_.begin - window);
}

std::optional<Ran> BusyThreads::ran(Thread thread) const {
  const auto found = threads_.find(thread);
  const auto ran = found != threads_.end() ? this->ran(found->second) : std::nullopt;
  if (!ran) return std::nullopt;
  return Ran{ran->inside, tells(*ran) ? ran->outside + found->second.before : 0};
}

void BusyThreads::period_begins(bool open) {
  for (auto& [thread, known] : threads_) {
    const auto ran = this->ran(known);
    known.before = ran && !tells(*ran) ? known.before + ran->outside : 0;
    --known.periods;
    known.begin = known.end;
    known.clock.reset();
    known.inside.reset();
    known.end.reset();
  }
  std::erase_if(threads_, [](const auto& entry) { return entry.second.periods == 0; });
  times_ = {times_.end, open ? std::optional(times_.end) : std::nullopt, std::nullopt, times_.end, 0};
}

}  // namespace culprit::record::syscalls
