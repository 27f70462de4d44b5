// Which ELF files hold the marks of culprit_annotate.h, by their notes.
#pragma once

#include <string>
#include <vector>

namespace culprit::record::annotate {

/// Names of the marks of provider "culprit" in a file, sorted, each once; empty when there are none, or it cannot be
/// read.
std::vector<std::string> marks_in(const std::string& path);

}  // namespace culprit::record::annotate
