// The private folder in which recorded programs put their rings.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::record::nvtx {

/// A folder of its own with mode 0700, on a file system in memory where there is one. Removed with what is in it by the
/// destructor; what a killed recorder left behind is removed by the next one of the same user.
class RingFolder {
 public:
  /// In `parent`, or in the first of /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR, /tmp that takes it.
  static Result<RingFolder> create(const std::string& parent = {});
  RingFolder(RingFolder&& other) noexcept;
  RingFolder& operator=(RingFolder&& other) noexcept;
  ~RingFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }
  /// Names of the rings in it, sorted; at most some thousand of them at once.
  [[nodiscard]] std::vector<std::string> files() const;
  /// The name goes, whoever has the file open keeps it.
  void remove(const std::string& file) const;

 private:
  RingFolder() = default;
  std::string path_;
  int fd_ = -1;
};

}  // namespace culprit::record::nvtx
