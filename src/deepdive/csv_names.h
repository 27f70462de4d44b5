// Names in a CSV file: written so that no spreadsheet runs them, read back as they were.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit::deepdive {

inline constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);  ///< where a column is that a file does not have

/// The name without the apostrophe that `append_csv_name` puts in front of a formula.
std::string_view unguard_name(std::string_view text);

/// `name` as one field, guarded against spreadsheets.
void append_csv_name(std::string& out, std::string_view name);

}  // namespace culprit::deepdive
