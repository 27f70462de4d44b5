// Functions worth watching of programs that many people run: data files in sets/, each with the versions it was tried
// on.
#pragma once

#include <span>
#include <string_view>

namespace culprit::record::python {

struct ReadySet {
  std::string_view name;  ///< "sglang": also what the title or command line of such a program holds
  std::string_view text;  ///< for parse_functions()
};

std::span<const ReadySet> ready_sets();

}  // namespace culprit::record::python
