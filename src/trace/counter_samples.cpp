#include "trace/counter_samples.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace culprit {

std::span<const CounterSample> samples_within(std::span<const CounterSample> samples, Ns begin, Ns end) {
  const auto first = std::ranges::lower_bound(samples, begin, {}, &CounterSample::at);
  const auto last = std::ranges::upper_bound(first, samples.end(), std::max(begin, end), {}, &CounterSample::at);
  if (end < begin) return {};
  return {first, last};
}

double interpolate(std::span<const CounterSample> samples, Ns at) {
  assert(!samples.empty());
  const auto after = std::ranges::upper_bound(samples, at, {}, &CounterSample::at);
  if (after == samples.begin()) return samples.front().value;
  if (after == samples.end()) return samples.back().value;
  const CounterSample& left = *(after - 1);
  const CounterSample& right = *after;
  const double share = static_cast<double>(at - left.at) / static_cast<double>(right.at - left.at);
  return left.value + (right.value - left.value) * share;
}

std::optional<double> mean_within(std::span<const CounterSample> samples, Ns begin, Ns end) {
  auto sample = std::ranges::upper_bound(samples, begin, {}, &CounterSample::at);
  if (sample != samples.begin()) --sample;
  double sum = 0;
  double span = 0;
  for (; sample != samples.end() && sample->at < end; ++sample) {
    const auto next = std::next(sample);
    const Ns until = next == samples.end() ? end : std::min(next->at, end);
    const auto held = static_cast<double>(until - std::max(sample->at, begin));
    sum += sample->value * held;
    span += held;
  }
  return span > 0 ? std::optional(sum / span) : std::nullopt;
}

std::int64_t counter_instance(std::string_view name, std::string_view track) {
  constexpr std::string_view kDeviceTrack = "CAT_XPU_";
  std::string_view digits;
  if (track.starts_with(kDeviceTrack)) {
    digits = track.substr(kDeviceTrack.size());
  } else if (const std::size_t at = name.rfind('_'); at != std::string_view::npos) {
    digits = name.substr(at + 1);
  }
  std::int64_t instance = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), instance);
  return error == std::errc() && end == digits.data() + digits.size() && instance >= 0 ? instance : -1;
}

}  // namespace culprit
