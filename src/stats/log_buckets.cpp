#include "stats/log_buckets.h"

#include <algorithm>
#include <bit>

namespace culprit::stats {

namespace {

constexpr unsigned kShift = 3;  // log2 of the buckets for each doubling
constexpr std::uint64_t kParts = std::uint64_t{1} << kShift;

}  // namespace

std::size_t log_bucket_of(std::uint64_t value) {
  if (value < kParts) return static_cast<std::size_t>(value);
  const auto power = static_cast<unsigned>(std::bit_width(value) - 1);
  const std::uint64_t part = (value >> (power - kShift)) & (kParts - 1);
  return std::min<std::size_t>((power - kShift + 1) * kParts + part, kLogBuckets - 1);
}

std::uint64_t log_bucket_begin(std::size_t bucket) {
  if (bucket < kParts) return bucket;
  const std::size_t power = bucket / kParts + kShift - 1;
  return (kParts + bucket % kParts) << (power - kShift);
}

std::optional<double> log_bucket_quantile(std::span<const std::uint64_t> counts, double q) {
  counts = counts.first(std::min(counts.size(), kLogBuckets));
  double all = 0;
  for (const std::uint64_t count : counts) all += static_cast<double>(count);
  if (all <= 0) return std::nullopt;
  const double wanted = std::clamp(q, 0.0, 1.0) * all;
  double before = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (count <= 0) continue;
    last = i;
    if (before + count >= wanted) {
      const auto begin = static_cast<double>(log_bucket_begin(i));
      const auto end = static_cast<double>(log_bucket_begin(i + 1));
      return begin + (end - begin) * std::clamp((wanted - before) / count, 0.0, 1.0);
    }
    before += count;
  }
  return static_cast<double>(log_bucket_begin(last + 1));
}

std::optional<double> log_bucket_mean(std::span<const std::uint64_t> counts) {
  counts = counts.first(std::min(counts.size(), kLogBuckets));
  double all = 0;
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    all += count;
    sum += count * static_cast<double>(log_bucket_begin(i) + log_bucket_begin(i + 1)) / 2;
  }
  return all > 0 ? std::optional(sum / all) : std::nullopt;
}

}  // namespace culprit::stats
