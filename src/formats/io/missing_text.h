// Cells of tables that say "no value".
#pragma once

#include <string_view>

namespace culprit::formats {

/// True for the texts that pandas, and so the tools that write with it, reads as "no value" in any column: "", N/A, NA,
/// NaN, null, None and so on.
bool is_missing_text(std::string_view text);

}  // namespace culprit::formats
