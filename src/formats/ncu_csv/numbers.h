// Numbers as Nsight Compute prints them, and their units.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::formats::ncu_csv {

/// Which character separates the fraction; the other one and spaces, apostrophes only group digits.
enum class Locale : std::uint8_t { point, comma };

/// What one number says about the locale of its file: "9,00" and "27.595.520" can only be comma, "23.59" and
/// "1,215,000" only point; "1.234" and "1,234" could be both.
enum class LocaleVote : std::uint8_t { none, point, comma, either };
LocaleVote vote(std::string_view text);

/// What a number that could be both is likely to be by its unit: none has three decimals of a nanosecond or a byte, and
/// none is more than 100 %.
LocaleVote vote_by_unit(std::string_view text, std::string_view unit);

/// The value of `text`; nullopt when it is no finite number. Instance lists behind a number ("12 (3; 4; 5)") and the
/// mark "(!)" before one are allowed.
std::optional<double> parse_number(std::string_view text, Locale locale);

/// A unit as printed and how it becomes SI.
struct UnitScale {
  std::string_view si;  ///< "ns", "fraction", "byte", "byte/s", "hz", or the unit as printed when it is none of these
  double factor = 1;
};
UnitScale unit_scale(std::string_view unit);

}  // namespace culprit::formats::ncu_csv
