// What a culprit::Run holds; the program looks inside, users of the library do not.
#pragma once

#include <culprit/load.h>

#include <string>
#include <vector>

#include "library/same_content.h"
#include "trace/trace.h"

namespace culprit {

struct Run::Data {
  Trace trace;
  std::vector<library::FileState> files;
};

}  // namespace culprit

namespace culprit::library {

/// Names of the files of a run, in their order.
std::vector<std::string> files_of(const Run& run);
/// Of the first file, for errors.
std::string path_of(const Run& run);

}  // namespace culprit::library
