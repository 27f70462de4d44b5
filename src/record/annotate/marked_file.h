// Which ELF files hold the marks of culprit_annotate.h, by their notes.
#pragma once

#include <string>
#include <vector>

namespace culprit::record::annotate {

/// Names of the marks of provider "culprit" in a file, sorted, each once; empty when there are none, or it cannot be
/// read.
std::vector<std::string> marks_in(const std::string& path);

/// A file that a process executes from.
struct MappedFile {
  std::string path;
  unsigned long long device = 0;  ///< as in /proc/PID/maps
  unsigned long long inode = 0;
};
/// From /proc/PID/maps, in the order of addresses; empty when the process is gone.
std::vector<MappedFile> executable_files(long pid);

}  // namespace culprit::record::annotate
