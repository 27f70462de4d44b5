// Checks of option values whose help stands in the option's own description.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace culprit::cli {

/// One of `names`; says so in the error, not in the help.
inline CLI::Validator one_of(const std::vector<std::string>& names) { return CLI::IsMember(names).description(""); }

/// A number from `low` to `high`; says so in the error, not in the help.
inline CLI::Validator in_range(double low, double high) { return CLI::Range(low, high).description(""); }

}  // namespace culprit::cli
