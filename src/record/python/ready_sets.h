// Functions worth watching of programs that many people run, and of libraries that many programs use: data files in
// sets/ and sets/libraries/, each with the versions it was tried on.
#pragma once

#include <span>
#include <string_view>

namespace culprit::record::python {

struct ReadySet {
  std::string_view name;    ///< "sglang": also what the title or command line of such a program holds
  std::string_view text;    ///< for parse_functions()
  bool of_library = false;  ///< of any program that has loaded "lib<name>_python" of one of these
};

std::span<const ReadySet> ready_sets();

}  // namespace culprit::record::python
