#include "trace/sampling_rate.h"

#include <fmt/format.h>

#include "core/text.h"
#include "trace/span.h"

namespace culprit {

std::optional<SamplingRates> sampling_rates(const Trace& trace) {
  const auto asked = parse_number<double>(fact_of(trace, "samples.rate_hz"));
  const auto mean = parse_number<double>(fact_of(trace, "samples.mean_rate_hz"));
  const auto lowest = parse_number<double>(fact_of(trace, "samples.lowest_rate_hz"));
  if (!asked || !mean || !lowest) return std::nullopt;
  return SamplingRates{*asked, *mean, *lowest};
}

bool was_lowered(const SamplingRates& rates) { return rates.lowest < rates.asked; }

std::string to_string(const SamplingRates& rates) {
  return fmt::format("{:.1f} a second and CPU on average, {:.1f} at least, of {:.0f}", rates.mean, rates.lowest,
                     rates.asked);
}

}  // namespace culprit
