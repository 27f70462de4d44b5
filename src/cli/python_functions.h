// Functions of Python programs on the command line.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "record/python/function_spec.h"

namespace culprit::cli {

/// As --python names them: one, or with '@' a file with one a line. Errors: a name or a file is not right.
Result<std::vector<record::python::FunctionSpec>> python_functions(const std::vector<std::string>& given);

}  // namespace culprit::cli
