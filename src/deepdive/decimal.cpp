#include "deepdive/decimal.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/text.h"

namespace culprit::deepdive {

namespace {

constexpr int kMostDigits = 17;
constexpr int kLargestPower = 308;

/// 10^n, correctly rounded; 0 <= n <= 308.
double power_of_ten(int n) {
  static constexpr std::array<double, 23> kExact = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (static_cast<std::size_t>(n) < kExact.size()) return kExact[static_cast<std::size_t>(n)];
  std::array<char, 8> text{'1', 'e'};
  const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), n).ptr;
  double value = 0;
  std::from_chars(text.data(), end, value);
  return value;
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<double> parse_reference_decimal(std::string_view text) {
  text = trim_blanks(text);
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++i;
  double number = 0;
  int digits = 0;
  std::int64_t exponent = 0;
  bool any = false;
  bool point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    if (digits < kMostDigits) {
      number = number * 10 + (c - '0');
      if (digits > 0 || c != '0') ++digits;
      if (point) --exponent;
    } else if (!point) {
      ++exponent;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    const bool minus = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (i == text.size()) return std::nullopt;
    std::int64_t written = 0;
    for (; i < text.size() && is_digit(text[i]); ++i)
      if (written < 1'000'000) written = written * 10 + (text[i] - '0');
    exponent += minus ? -written : written;
  }
  if (i != text.size()) return std::nullopt;
  if (number != 0) {
    if (exponent > kLargestPower) return std::nullopt;
    if (exponent > 0) {
      number *= power_of_ten(static_cast<int>(exponent));
    } else if (exponent >= -kLargestPower) {
      number /= power_of_ten(static_cast<int>(-exponent));
    } else {
      const std::int64_t beyond = -exponent - kLargestPower;
      number =
          beyond > kLargestPower ? 0 : number / power_of_ten(static_cast<int>(beyond)) / power_of_ten(kLargestPower);
    }
  }
  if (!std::isfinite(number)) return std::nullopt;
  return negative ? -number : number;
}

std::optional<double> parse_decimal(std::string_view text, DecimalRule rule) {
  if (rule == DecimalRule::reference) return parse_reference_decimal(text);
  text = trim_blanks(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  text = trim_blanks(text);
  if (const std::size_t point = text.find('.'); point != std::string_view::npos && point > 0) {
    if (text.find_first_not_of('0', point + 1) != std::string_view::npos) return std::nullopt;
    text = text.substr(0, point);
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace culprit::deepdive
