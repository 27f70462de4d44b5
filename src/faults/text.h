// Small pieces of text that several faults say.
#pragma once

#include <string>
#include <vector>

namespace culprit::faults {

/// Sorted numbers as ranges: {0, 1, 2, 5} -> "0-2,5".
std::string ranges_text(const std::vector<int>& numbers);
/// 16 hex digits that no other run has.
std::string unique_text();

}  // namespace culprit::faults
