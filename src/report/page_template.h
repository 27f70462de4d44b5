// The page of web/ as it was built into the program.
#pragma once

#include <string_view>

namespace culprit::report {

/// With @REPORT@ where the answer goes; empty: it could not be built.
std::string_view page_template();

}  // namespace culprit::report
