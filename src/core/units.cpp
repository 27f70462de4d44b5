#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace culprit {

namespace {

/// The usual case: digits that fit 18 places once scaled, no sign, no exponent, no more decimals than the scale keeps.
std::optional<Ns> parse_short_decimal(std::string_view text, int scale_digits) {
  if (text.empty() || text.size() > 19 || scale_digits > 3) return std::nullopt;
  std::uint64_t value = 0;
  int decimals = -1;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit <= 9) {
      value = value * 10 + digit;
      decimals += decimals >= 0;
    } else if (c == '.' && decimals < 0) {
      decimals = 0;
    } else {
      return std::nullopt;
    }
  }
  constexpr std::array<std::uint64_t, 4> kPowers = {1, 10, 100, 1000};
  const int missing = scale_digits - std::max(decimals, 0);
  const int digits = static_cast<int>(text.size()) - (decimals >= 0 ? 1 : 0);
  if (missing < 0 || digits == 0 || digits + missing > 18) return std::nullopt;
  return static_cast<Ns>(value * kPowers[static_cast<std::size_t>(missing)]);
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
    if (kept < 18) {
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

  constexpr std::uint64_t kMax = static_cast<std::uint64_t>(std::numeric_limits<Ns>::max());
  if (power >= 0) {
    for (; power > 0 && digits != 0; --power) {
      if (digits > kMax / 10) return std::nullopt;
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
  if (digits > kMax) return std::nullopt;
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
