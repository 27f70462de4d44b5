#include "trace/sampling_rate.h"

#include <fmt/format.h>

#include <string_view>

#include "core/text.h"

namespace culprit {

std::optional<SamplingRates> sampling_rates(const Trace& trace) {
  for (const Rank& rank : trace.ranks) {
    const auto fact = [&](std::string_view key) -> std::optional<double> {
      for (const auto& [known, value] : rank.metadata)
        if (known == key) return parse_number<double>(value);
      return std::nullopt;
    };
    const auto asked = fact("samples.rate_hz");
    const auto mean = fact("samples.mean_rate_hz");
    const auto lowest = fact("samples.lowest_rate_hz");
    if (asked && mean && lowest) return SamplingRates{*asked, *mean, *lowest};
  }
  return std::nullopt;
}

bool was_lowered(const SamplingRates& rates) { return rates.lowest < rates.asked; }

std::string to_string(const SamplingRates& rates) {
  return fmt::format("{:.1f} a second and CPU on average, {:.1f} at least, of {:.0f}", rates.mean, rates.lowest,
                     rates.asked);
}

}  // namespace culprit
