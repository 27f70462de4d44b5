#include "deepdive/measure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/saturating.h"

namespace culprit::deepdive {

std::optional<Measurement> measure(std::span<const CounterSample> samples, Ns begin, Ns end) {
  if (samples.empty()) return std::nullopt;
  constexpr std::size_t kEnough = 3;
  const auto inside = samples_within(samples, begin, end);
  Measurement result;
  if (inside.size() < kEnough) {
    const double first = interpolate(samples, begin);
    const double last = interpolate(samples, end);
    result.mean = (first + last) / 2;
    result.spread = std::abs(first - last) / 2;
    result.interpolated = true;
    return result;
  }
  const auto n = static_cast<double>(inside.size());
  double sum = 0;
  for (const CounterSample& sample : inside) sum += sample.value;
  result.mean = sum / n;
  double squares = 0;
  for (const CounterSample& sample : inside) squares += (sample.value - result.mean) * (sample.value - result.mean);
  result.spread = std::sqrt(squares / n);
  return result;
}

double Pool::sigma() const { return std::sqrt(variance_ / weight_); }

Provenance provenance_of(std::uint64_t measured, std::uint64_t interpolated) {
  if (measured == 0 && interpolated == 0) return Provenance::none;
  if (interpolated == 0) return Provenance::measured;
  return measured == 0 ? Provenance::interpolated : Provenance::mixed;
}

std::vector<Execution> merge_overlapping(std::vector<Execution> executions) {
  std::ranges::stable_sort(executions, {}, &Execution::begin);
  std::vector<Execution> blocks;
  for (const Execution& execution : executions) {
    if (!blocks.empty() && execution.begin < blocks.back().end) {
      Execution& block = blocks.back();
      block.end = std::max(block.end, execution.end);
      block.duration = add_saturating(block.duration, execution.duration);
      block.count += execution.count;
    } else {
      blocks.push_back(execution);
    }
  }
  return blocks;
}

std::int64_t estimate_cores(std::span<const double> highest_use_of_process) {
  constexpr std::array<std::int64_t, 8> kUsual = {8, 16, 24, 32, 48, 64, 96, 128};
  double used = 0;
  for (const double percent : highest_use_of_process)
    if (percent > 0) used += std::ceil(percent / 100);
  if (!(used > 0)) return 1;
  std::int64_t best = kUsual.front();
  for (const std::int64_t cores : kUsual)
    if (std::abs(static_cast<double>(cores) - used) < std::abs(static_cast<double>(best) - used)) best = cores;
  return best;
}

}  // namespace culprit::deepdive
