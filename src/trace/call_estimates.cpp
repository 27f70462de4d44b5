#include "trace/call_estimates.h"

#include <fmt/format.h>

#include <string_view>

#include "core/text.h"

namespace culprit {

std::optional<CallEstimates> call_estimates(const Trace& trace) {
  const auto fact = [&](std::string_view key) -> std::optional<double> {
    for (const Rank& rank : trace.ranks)
      for (const auto& [known, value] : rank.metadata)
        if (known == key) return parse_number<double>(value);
    return std::nullopt;
  };
  const auto share = fact("syscalls.counted_share");
  if (!share) return std::nullopt;
  return CallEstimates{*share, fact("syscalls.count_error")};
}

std::string to_string(const CallEstimates& estimates) {
  return fmt::format(
      "counted in {:.0f} % of the time{}", estimates.share * 100,
      estimates.error ? fmt::format(", ± {:.1f} %", *estimates.error * 100) : ", too short to know the error");
}

}  // namespace culprit
