// Decimal text to double, in the two ways a profile needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::deepdive {

/// How the digits of a cell become a double.
enum class DecimalRule : std::uint8_t {
  nearest,    ///< correctly rounded: writing with the same number of decimals gives the same text
  reference,  ///< as the reference does it; differs in the last bit above about 10^13 and decides which values are tied
              ///< there
};

/// The reference's conversion: at most 17 significant digits are accumulated by x = 10 x + digit (leading zeros do not
/// count, further fraction digits are ignored, further integer digits raise the exponent), then one multiplication or
/// division by the power of ten. nullopt when the text is no finite number; spaces around it are allowed.
std::optional<double> parse_reference_decimal(std::string_view text);

/// By `rule`; nullopt as above.
std::optional<double> parse_decimal(std::string_view text, DecimalRule rule);

/// A whole number, also written as "12.0"; nullopt for anything else.
std::optional<std::int64_t> parse_whole(std::string_view text);

}  // namespace culprit::deepdive
