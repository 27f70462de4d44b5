// How a resource behaved while something ran, as pure functions over samples and executions. Formulas of the reference
// (its per-cycle metrics); the units are those of the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/units.h"
#include "deepdive/profile.h"
#include "trace/counter_samples.h"

namespace culprit::deepdive {

/// Mean and spread of one resource during one execution.
struct Measurement {
  double mean = 0;
  double spread = 0;          ///< population standard deviation
  bool interpolated = false;  ///< fewer than three samples lay inside
};

/// With at least three samples inside [begin, end] their mean and spread; else half the sum and half the difference of
/// the values interpolated at both ends. nullopt without samples.
std::optional<Measurement> measure(std::span<const CounterSample> samples, Ns begin, Ns end);

/// Measurements of many executions, weighted by duration.
class Pool {
 public:
  void add(const Measurement& measurement, double weight) {
    mean_ += measurement.mean * weight;
    variance_ += measurement.spread * measurement.spread * weight;
    weight_ += weight;
    ++(measurement.interpolated ? interpolated_ : measured_);
  }
  [[nodiscard]] double mu() const { return mean_ / weight_; }
  /// Spread inside executions only; differences between them do not enter.
  [[nodiscard]] double sigma() const;
  [[nodiscard]] bool empty() const { return !(weight_ > 0); }
  [[nodiscard]] std::uint64_t measured() const { return measured_; }
  [[nodiscard]] std::uint64_t interpolated() const { return interpolated_; }

 private:
  double mean_ = 0;
  double variance_ = 0;
  double weight_ = 0;
  std::uint64_t measured_ = 0;
  std::uint64_t interpolated_ = 0;
};

/// Where the values of a function come from, over all its resources.
Provenance provenance_of(std::uint64_t measured, std::uint64_t interpolated);

/// One run of a function; several that overlap may have been put together.
struct Execution {
  Ns begin = 0;
  Ns end = 0;
  Ns duration = 0;          ///< sum over what was put together, at least end - begin when nothing was
  std::uint64_t count = 1;  ///< how many were put together
};

/// Puts executions that overlap into blocks; touching ones stay apart. Sorts by begin, keeping the order of equals.
std::vector<Execution> merge_overlapping(std::vector<Execution> executions);

/// Cores of a host from the highest CPU use (percent, 100 per core) of each of its processes: the nearest of 8, 16, 24,
/// 32, 48, 64, 96, 128 to the sum of whole cores in use, the smaller of two; 1 when nothing was in use.
std::int64_t estimate_cores(std::span<const double> highest_use_of_process);

}  // namespace culprit::deepdive
