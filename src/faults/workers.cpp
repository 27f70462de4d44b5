#include "faults/workers.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <system_error>

#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr Ns kDutyPeriod = 10'000'000;

Ns thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void sleep_until(Ns moment) {
  const timespec time{moment / 1'000'000'000, moment % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

void run_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(cpus)) + 1;
  cpu_set_t* const set = CPU_ALLOC(most);
  const std::size_t size = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(size, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), size, set);
  sched_setaffinity(0, size, set);
  CPU_FREE(set);
}

}  // namespace

std::vector<double> duties_of_share(double severity, std::size_t cpus) {
  const double share = std::clamp(severity, 0.0, 1.0) * static_cast<double>(cpus);
  constexpr double kSmallest = 0.005;
  const auto full = static_cast<std::size_t>(share + kSmallest);
  std::vector<double> duties(full, 1.0);
  if (const double rest = share - static_cast<double>(full); rest > kSmallest) duties.push_back(rest);
  return duties;
}

Status Workers::start(const std::vector<double>& duties, const std::vector<int>& cpus, Round round) {
  stop_.store(false);
  round_ = std::move(round);
  done_ = std::vector<WorkDone>(duties.size());
  threads_.reserve(duties.size());
  try {
    for (std::size_t i = 0; i < duties.size(); ++i)
      threads_.emplace_back([this, i, duty = duties[i], cpus] {
        run_on(cpus);
        work(i, duty);
      });
  } catch (const std::system_error& error) {
    stop();
    return environment_error(fmt::format("thread {} of {} cannot be started: {}", threads_.size() + 1, duties.size(),
                                         error.code().message()),
                             "");
  }
  return {};
}

void Workers::stop() {
  stop_.store(true);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work(std::size_t index, double duty) {
  prctl(PR_SET_NAME, "culprit-load");
  WorkDone& done = done_[index];
  const auto busy = static_cast<Ns>(std::llround(duty * static_cast<double>(kDutyPeriod)));
  Ns period = monotonic_now();
  while (!stop_.load(std::memory_order_relaxed)) {
    Ns now = monotonic_now();
    while (now < period + busy && !stop_.load(std::memory_order_relaxed)) {
      round_(index, done);
      const Ns after = monotonic_now();
      done.busy_ns.fetch_add(after - now, std::memory_order_relaxed);
      if (after - now > done.longest_ns.load(std::memory_order_relaxed))
        done.longest_ns.store(after - now, std::memory_order_relaxed);
      now = after;
    }
    done.cpu_ns.store(thread_cpu_time(), std::memory_order_relaxed);
    // A round that took longer than the period (an fsync) is followed by a pause that keeps the share.
    period += std::max(kDutyPeriod, static_cast<Ns>(static_cast<double>(now - period) / duty));
    if (duty < 1 && period > now)
      sleep_until(period);
    else
      period = now;
  }
}

std::int64_t Workers::sum(std::atomic<std::int64_t> WorkDone::*member) const {
  std::int64_t total = 0;
  for (const WorkDone& done : done_) total += (done.*member).load(std::memory_order_relaxed);
  return total;
}

std::int64_t Workers::longest_ns() const {
  std::int64_t longest = 0;
  for (const WorkDone& done : done_) longest = std::max(longest, done.longest_ns.load(std::memory_order_relaxed));
  return longest;
}

}  // namespace culprit::faults
