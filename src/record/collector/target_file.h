// Files that a target names (its libraries, its program) are hostile: a link or a mount of its own could lead a
// privileged recorder to any file or device of the host. Here they are looked up below the target's root, and only
// regular files are opened.
#pragma once

#include <string>
#include <utility>

namespace culprit::record {

/// A regular file that was found, held by a descriptor that cannot be read from (O_PATH): whoever opens path() gets
/// this very file, whatever stands under its name by then.
class TargetFile {
 public:
  TargetFile() = default;
  explicit TargetFile(int fd) : fd_(fd) {}
  TargetFile(TargetFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TargetFile& operator=(TargetFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TargetFile();

  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }
  /// To open it by, as long as this object lives; empty when nothing was found.
  [[nodiscard]] std::string path() const;
  /// "08:01 1234": device and inode as /proc/PID/maps writes them.
  [[nodiscard]] std::string identity() const;

 private:
  int fd_ = -1;
};

/// `path`, absolute and without symbolic links as /proc/PID/maps has it, below the folder `root` (/proc/PID/root).
/// Nothing: missing, not a regular file, or reached by a link.
TargetFile open_target_file(const std::string& root, const std::string& path);

/// A folder below `root`; links in its path stay below it. path() lists it.
TargetFile open_target_folder(const std::string& root, const std::string& path);

}  // namespace culprit::record
