// Walking over the lines of a text without copying it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "model/kernel_log.h"

namespace culprit::formats::kernel_text {

inline constexpr std::size_t kMostDamage = 20;

/// Counts a line that could not be used.
inline void bad_row(model::InputReport& report, std::uint64_t line, std::string what, std::string remedy) {
  ++report.bad_rows;
  if (report.first.size() < kMostDamage) report.first.push_back({line, std::move(what), std::move(remedy)});
}

/// Counts a cell of a kept row that is no number.
inline void bad_cell(model::InputReport& report, std::uint64_t line, std::string what, std::string remedy) {
  ++report.bad_cells;
  if (report.first.size() < kMostDamage) report.first.push_back({line, std::move(what), std::move(remedy)});
}

inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Calls `use(line, number)` for every line, number 1-based, without its end; a byte order mark is skipped.
template <class Use>
void each_line(std::string_view text, Use&& use) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, number);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace culprit::formats::kernel_text
