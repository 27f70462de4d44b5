// "did you mean 'X'?" for a verb or an option that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

/// The question for the nearest of `known` by edit distance, or `otherwise` when none is near.
std::string suggestion(std::string_view text, const std::vector<std::string>& known, std::string otherwise);

}  // namespace culprit::cli
