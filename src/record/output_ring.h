// The files of a recording that goes on in another one now and then.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <string>

#include "core/error.h"

namespace culprit::record {

/// "run.0003.pftrace" for "run.pftrace" and 3.
std::string numbered_output(const std::string& output, std::size_t number);

/// Error when a file with such a name exists: a recording must not fail in an hour for what is there now.
Status refuse_numbered(const std::string& output);

/// Removes the oldest files, as long as they are those that were written.
class OutputRing {
 public:
  /// `keep`: so many files, the one that is being written among them; 0: all.
  explicit OutputRing(std::size_t keep) : keep_(keep) {}
  /// The file is complete, and another one was begun.
  void add(const std::string& path);

 private:
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::size_t keep_;
  std::deque<File> files_;
};

}  // namespace culprit::record
