// Lines and cells that could not be used, counted.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace culprit::formats::kernel_text
