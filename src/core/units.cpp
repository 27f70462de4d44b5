#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace culprit {

namespace {

constexpr std::uint64_t kMostNs = std::numeric_limits<Ns>::max();

/// Adds the digits at `p` to `value`; gives where they end.
const char* take_digits(const char* p, const char* end, std::uint64_t& value) {
  for (unsigned digit = 0; p != end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) <= 9; ++p)
    value = value * 10 + digit;
  return p;
}

/// The usual case: digits that fit 19 places once scaled, no sign, no exponent, no more decimals than the scale keeps.
std::optional<Ns> parse_short_decimal(std::string_view text, int scale_digits) {
  if (text.size() > 20 || scale_digits > 3) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const char* const point = take_digits(text.data(), end, value);
  auto digits = point - text.data();
  auto missing = static_cast<std::ptrdiff_t>(scale_digits);
  if (point != end) {
    if (*point != '.' || take_digits(point + 1, end, value) != end) return std::nullopt;
    const auto decimals = end - point - 1;
    digits += decimals;
    missing -= decimals;
  }
  constexpr std::array<std::uint64_t, 4> kPowers = {1, 10, 100, 1000};
  if (missing < 0 || digits == 0 || digits + missing > 19) return std::nullopt;
  value *= kPowers[static_cast<std::size_t>(missing)];
  if (value > kMostNs) return std::nullopt;
  return static_cast<Ns>(value);
}

}  // namespace

std::optional<Ns> parse_scaled_decimal(std::string_view text, int scale_digits) {
  if (const auto value = parse_short_decimal(text, scale_digits)) return value;
  std::size_t i = 0;
  bool negative = false;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';

  // The digits as one integer of at most 19 digits, and the power of ten it has to be multiplied by.
  std::uint64_t digits = 0;
  int kept = 0;
  int power = scale_digits;
  bool any = false;
  bool point = false;
  int first_lost = -1;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (kept < 19) {
      digits = digits * 10 + static_cast<unsigned>(c - '0');
      if (digits != 0) ++kept;
      if (point) --power;
    } else {
      if (first_lost < 0) first_lost = c - '0';
      if (!point) ++power;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool exponent_negative = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) exponent_negative = text[i++] == '-';
    if (i >= text.size()) return std::nullopt;
    int exponent = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      if (exponent < 10000) exponent = exponent * 10 + (text[i] - '0');
    power += exponent_negative ? -exponent : exponent;
  }
  if (i != text.size()) return std::nullopt;

  if (power >= 0) {
    for (; power > 0 && digits != 0; --power) {
      if (digits > kMostNs / 10) return std::nullopt;
      digits *= 10;
    }
  } else {
    int last = first_lost >= 5 && power == 0 ? 5 : 0;
    for (; power < 0 && digits != 0; ++power) {
      last = static_cast<int>(digits % 10);
      digits /= 10;
    }
    if (power < 0) last = 0;
    if (last >= 5) ++digits;
  }
  if (digits > kMostNs) return std::nullopt;
  const Ns value = static_cast<Ns>(digits);
  return negative ? -value : value;
}

std::string format_us_exact(Ns ns) {
  const bool negative = ns < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::string text = fmt::format("{}{}", negative ? "-" : "", magnitude / 1000);
  if (const unsigned rest = static_cast<unsigned>(magnitude % 1000); rest != 0) {
    std::string fraction = fmt::format(".{:03}", rest);
    while (fraction.back() == '0') fraction.pop_back();
    text += fraction;
  }
  return text;
}

std::string format_duration(double ns) {
  if (!std::isfinite(ns)) return "n/a";
  const double magnitude = std::fabs(ns);
  if (magnitude >= 1e9) return fmt::format("{:.3f}s", ns / 1e9);
  if (magnitude >= 1e6) return fmt::format("{:.3f}ms", ns / 1e6);
  return fmt::format("{:.3f}us", ns / 1e3);
}

std::string format_duration(Ns ns) { return format_duration(static_cast<double>(ns)); }

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string format_count(std::uint64_t value) {
  std::string text = fmt::format("{}", value);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

}  // namespace culprit
