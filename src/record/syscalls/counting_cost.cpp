#include "record/syscalls/counting_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "core/file.h"

namespace culprit::record::syscalls {

namespace {

/// Ticks and the reading itself leave a gap of a few percent in what is busy all the time.
constexpr double kAllOfIt = 0.9;
/// How wrong the measured cost of a call may be: other caches, other calls.
constexpr double kCostDoubt = 0.25;

}  // namespace

double taken_by_counting(double calls, double cost_ns, Ns window) {
  if (window <= 0) return 0;
  const double taken = calls * cost_ns / static_cast<double>(window);
  return taken < kLeastTaken ? 0 : std::min(taken, kMostTaken);
}

Unseen unseen_calls(double taken, std::optional<double> busy) {
  const double more = taken / (1 - taken);
  if (busy.value_or(1) >= kAllOfIt) return {1 + more, kCostDoubt * more};
  return {1, more / 2};
}

void BusyThreads::look(Ns now) {
  std::erase_if(threads_, [](const auto& entry) { return !entry.second.watched; });
  for (auto& [thread, known] : threads_) {
    const auto text = read_beginning(fmt::format("/proc/{}/task/{}/schedstat", thread.first, thread.second));
    const auto busy = text ? parse_busy(*text) : std::nullopt;
    known.share.reset();
    if (busy && known.busy_ns && now > known.at)
      known.share = static_cast<double>(*busy - *known.busy_ns) / static_cast<double>(now - known.at);
    known.busy_ns = busy;
    known.at = now;
    known.watched = false;
  }
}

std::optional<double> BusyThreads::busy(Thread thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? std::nullopt : found->second.share;
}

std::optional<std::int64_t> parse_busy(std::string_view schedstat) {
  std::istringstream text{std::string(schedstat)};
  std::int64_t oncpu = 0;
  std::int64_t queued = 0;
  if (!(text >> oncpu >> queued) || oncpu < 0 || queued < 0) return std::nullopt;
  return oncpu + queued;
}

}  // namespace culprit::record::syscalls
