// What a program printed before it failed.
#pragma once

#include <string>

namespace culprit::ab {

/// The last lines of a file, at most ten; empty when there are none.
std::string last_lines(const std::string& file);

}  // namespace culprit::ab
