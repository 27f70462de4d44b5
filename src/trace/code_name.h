// What code is called in sums over many samples.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace culprit {

/// The file of code without a name ("libfoo.so" of "libfoo.so+0x1a2b"); nothing for a function that has one. Addresses
/// tell nobody anything and differ from run to run: what has no name is summed up by file.
std::optional<std::string_view> file_of_unnamed(std::string_view function);

/// A function of Python as stacks name it, without its line, which moves with every edit above it: "forward (model.py)"
/// of "forward (model.py:12)", also of "py::forward:/app/model.py", the way of perf map files (of whose path what
/// stacks show is kept). Nothing for other code.
std::optional<std::string> python_function(std::string_view function);

}  // namespace culprit
