// Time and quantities. Inside Culprit everything is SI; times are int64 nanoseconds and never pass through a double,
// because a double in microseconds since the epoch resolves only 0.25 us.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit {

/// A point in time or a duration in nanoseconds.
using Ns = std::int64_t;

inline constexpr Ns kMs = 1'000'000;
inline constexpr Ns kSecond = 1'000'000'000;
/// Times a share: what is shown of it.
inline constexpr double kPercent = 100;

/// Reads a decimal number (sign, digits, fraction, exponent) and returns it times 10^`scale_digits`, rounded half away
/// from zero: with 3, microseconds become nanoseconds exactly. nullopt when the text is no finite number or does not
/// fit.
std::optional<Ns> parse_scaled_decimal(std::string_view text, int scale_digits);

/// Microseconds as decimal text to nanoseconds.
inline std::optional<Ns> parse_us(std::string_view text) { return parse_scaled_decimal(text, 3); }

/// Nanoseconds as microseconds in the shortest exact decimal form: 1500 -> "1.5", 2000 -> "2".
std::string format_us_exact(Ns ns);

/// Nanoseconds in the look of a profiler table: three decimals and the unit s, ms or us ("1.132s", "325.435ms",
/// "0.883us").
std::string format_duration(Ns ns);
/// The same for a mean that is not whole nanoseconds.
std::string format_duration(double ns);

/// Bytes with a binary unit: "1.50 GiB".
std::string format_bytes(double bytes);

/// An integer with thousands separators: "1,234,567".
std::string format_count(std::uint64_t value);

}  // namespace culprit
