#include "stats/quantile.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>

namespace culprit::stats {

namespace {

/// Between which two values a quantile lies, and how far from the first.
struct Place {
  std::size_t low = 0;
  std::size_t high = 0;
  double part = 0;
};

Place place_of(std::size_t n, double share) {
  assert(share >= 0 && share <= 1);
  const double at = share * static_cast<double>(n - 1);
  const auto low = static_cast<std::size_t>(at);
  return {low, std::min(low + 1, n - 1), at - static_cast<double>(low)};
}

/// The distance may be larger than any Ns.
std::uint64_t distance(Ns low, Ns high) { return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low); }

Ns forward(Ns low, std::uint64_t by) { return static_cast<Ns>(static_cast<std::uint64_t>(low) + by); }

template <class T>
double between(T low, T high) {
  return static_cast<double>(low) + (static_cast<double>(high) - static_cast<double>(low)) / 2;
}
double between(Ns low, Ns high) { return static_cast<double>(low) + static_cast<double>(distance(low, high)) / 2; }

template <class T>
struct MiddleTwo {
  T low;
  T high;
};

/// The same value twice when their number is odd. `values` are not empty.
template <class T>
MiddleTwo<T> middle_two(std::span<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return {values.size() % 2 == 1 ? *middle : *std::max_element(values.begin(), middle), *middle};
}

}  // namespace

double quantile_of_sorted(std::span<const double> sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [low, high, part] = place_of(sorted.size(), share);
  // Without the first test an infinite neighbour that has no part in the answer would make it NaN.
  if (part == 0 || sorted[low] == sorted[high]) return sorted[low];
  return sorted[low] + (sorted[high] - sorted[low]) * part;
}

Ns quantile_of_sorted(std::span<const Ns> sorted, double share) {
  assert(!sorted.empty());
  const auto [low, high, part] = place_of(sorted.size(), share);
  const std::uint64_t step = distance(sorted[low], sorted[high]);
  const long double along = std::round(static_cast<long double>(step) * static_cast<long double>(part));
  return forward(sorted[low], static_cast<std::uint64_t>(along));
}

template <class T>
double median_in_place(std::span<T> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [low, high] = middle_two(values);
  return low == high ? static_cast<double>(low) : between(low, high);
}

template <class T>
double median(std::vector<T> values) {
  return median_in_place(std::span<T>(values));
}

Ns median_of_times(std::span<Ns> values) {
  assert(!values.empty());
  const auto [low, high] = middle_two(values);
  const std::uint64_t step = distance(low, high);
  return forward(low, step / 2 + step % 2);
}

std::uint32_t median_low(std::vector<std::uint32_t> values) {
  assert(!values.empty());
  return middle_two(std::span<std::uint32_t>(values)).low;
}

std::uint32_t median_high(std::vector<std::uint32_t> values) {
  assert(!values.empty());
  return middle_two(std::span<std::uint32_t>(values)).high;
}

template double median_in_place(std::span<double>);
template double median_in_place(std::span<Ns>);
template double median_in_place(std::span<std::uint32_t>);
template double median(std::vector<double>);
template double median(std::vector<Ns>);
template double median(std::vector<std::uint32_t>);

}  // namespace culprit::stats
