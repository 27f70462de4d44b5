#include "cli/durations.h"

#include <limits>

namespace culprit::cli {

std::optional<Ns> parse_duration(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string_view::npos || unit_at == 0) return std::nullopt;
  const std::string_view unit = text.substr(unit_at);
  int digits = 9;
  Ns factor = 1;
  if (unit == "ns")
    digits = 0;
  else if (unit == "us")
    digits = 3;
  else if (unit == "ms")
    digits = 6;
  else if (unit == "m" || unit == "min")
    factor = 60;
  else if (unit == "h")
    factor = 3600;
  else if (unit != "s")
    return std::nullopt;
  const auto value = parse_scaled_decimal(text.substr(0, unit_at), digits);
  if (!value || *value > std::numeric_limits<Ns>::max() / factor) return std::nullopt;
  return *value * factor;
}

}  // namespace culprit::cli
