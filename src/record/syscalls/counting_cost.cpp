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
  return taken < kLeastTaken ? 0 : taken;
}

Unseen unseen_calls(double taken, const std::optional<Busy>& busy) {
  if (taken <= 0) return {};
  // Who slept most of the time and was busy in this window is not known.
  const Busy known = busy && busy->running > taken ? *busy : Busy{};
  const double of_running = std::min(taken / known.running, kMostTaken);
  const double more = of_running / (1 - of_running);
  if (known.running + known.queued >= kAllOfIt) return {1 + more, kCostDoubt * more};
  return {1, more / 2};
}

void BusyThreads::look(Ns now) {
  std::erase_if(threads_, [](const auto& entry) { return !entry.second.watched; });
  for (auto& [thread, known] : threads_) {
    const auto text = read_beginning(fmt::format("/proc/{}/task/{}/schedstat", thread.first, thread.second));
    const auto totals = text ? parse_busy(*text) : std::nullopt;
    known.busy.reset();
    if (totals && known.totals && now > known.at) {
      const auto share = [&](Ns since, Ns until) {
        return static_cast<double>(until - since) / static_cast<double>(now - known.at);
      };
      known.busy = {share(known.totals->running, totals->running), share(known.totals->queued, totals->queued)};
    }
    known.totals = totals;
    known.at = now;
    known.watched = false;
  }
}

std::optional<Busy> BusyThreads::busy(Thread thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? std::nullopt : found->second.busy;
}

std::optional<BusyTotals> parse_busy(std::string_view schedstat) {
  std::istringstream text{std::string(schedstat)};
  BusyTotals totals;
  if (!(text >> totals.running >> totals.queued) || totals.running < 0 || totals.queued < 0) return std::nullopt;
  return totals;
}

}  // namespace culprit::record::syscalls
