// Durations counted in buckets that grow with them: eight for each doubling, so that a quantile is known within an
// eighth. What the programs in the kernel keep of system calls and disk requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace culprit::stats {

inline constexpr std::size_t kLogBuckets = 312;  ///< up to 2^41, half an hour in nanoseconds

/// The bucket of a value; the last one holds all that are larger.
std::size_t log_bucket_of(std::uint64_t value);
/// The least value of a bucket; of kLogBuckets where the last one ends.
std::uint64_t log_bucket_begin(std::size_t bucket);
/// The value below which the share `q` (0 to 1) of the counted ones lies, spread evenly inside a bucket. nullopt: none
/// was counted. Buckets behind kLogBuckets are not looked at.
std::optional<double> log_bucket_quantile(std::span<const std::uint64_t> counts, double q);

/// The mean, each taken for the middle of its bucket. nullopt: none was counted.
std::optional<double> log_bucket_mean(std::span<const std::uint64_t> counts);

}  // namespace culprit::stats
