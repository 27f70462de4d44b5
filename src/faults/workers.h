// Threads that load the machine for a share of the time: some all the time, one for the remainder.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace culprit::faults {

/// What one thread of a load has done so far.
struct alignas(64) WorkDone {
  std::atomic<std::int64_t> rounds{0};
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> busy_ns{0};     ///< wall time inside rounds
  std::atomic<std::int64_t> longest_ns{0};  ///< the longest round
  std::atomic<std::int64_t> cpu_ns{0};      ///< CPU time of the thread
};

/// How a share of `cpus` CPUs becomes threads: the duty cycle of each, e.g. 1.3 of 2 -> {1, 0.3}.
std::vector<double> duties_of_share(double severity, std::size_t cpus);

class Workers {
 public:
  /// One round of work of thread `index`, well below a millisecond where it can be; what it did goes into `done`.
  using Round = std::function<void(std::size_t index, WorkDone& done)>;

  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// One thread per duty (share of 10 ms in which it works), on `cpus` (empty: wherever this process may run).
  /// Error: no thread can be started; those that were are stopped.
  Status start(const std::vector<double>& duties, const std::vector<int>& cpus, Round round);
  void stop();

  [[nodiscard]] std::int64_t sum(std::atomic<std::int64_t> WorkDone::*member) const;
  [[nodiscard]] std::int64_t longest_ns() const;
  [[nodiscard]] std::size_t count() const { return done_.size(); }

 private:
  void work(std::size_t index, double duty);

  std::atomic<bool> stop_{false};
  std::vector<WorkDone> done_;
  std::vector<std::thread> threads_;
  Round round_;
};

}  // namespace culprit::faults
