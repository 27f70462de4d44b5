// A file that appears whole or not at all: what is written goes to a temporary file beside the target, which replaces
// the target when it is complete. A failed or killed run never leaves half a file under the target's name.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/error.h"

namespace culprit {

/// Open for writing; commit() makes it visible, destruction without commit removes it. "-" is standard output and
/// special files
/// (/dev/null, pipes) are written directly.
class AtomicFile {
 public:
  /// `mode` as in open(2), narrowed by the umask.
  static Result<AtomicFile> create(const std::string& path, mode_t mode);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  /// Appends. A reader that closed the other end of a pipe is no error: what follows is dropped and closed() becomes
  /// true.
  Status write(std::string_view bytes);
  [[nodiscard]] bool closed() const { return closed_; }
  /// Flushes to the file system and gives the file its name.
  Status commit();

 private:
  AtomicFile() = default;
  void discard() noexcept;

  std::string path_;
  std::string temporary_;  ///< empty: written directly
  int fd_ = -1;
  bool owned_ = false;  ///< fd_ has to be closed
  bool closed_ = false;
};

}  // namespace culprit
