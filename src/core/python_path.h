// The files of Python's code by the names that people know them by.
#pragma once

#include <string_view>

namespace culprit {

/// "vllm/model.py" of a package's file, "json/decoder.py" of the language's library, else the file's own name; what
/// stands in for a file ("<string>") as it is.
std::string_view short_python_path(std::string_view path);

}  // namespace culprit
