// The libraries that recorded programs load lie beside the program, or where an installation puts them.
#pragma once

#include <string>

#include "core/error.h"

namespace culprit::record {

/// The path of `name` ("libculprit_nvtx.so"). Error (Environment): it is in none of the places.
Result<std::string> installed_library(const std::string& name);

}  // namespace culprit::record
