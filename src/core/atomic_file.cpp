#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <system_error>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace culprit {

namespace {

Error write_error(const std::string& path, int code) {
  return environment_error(fmt::format("cannot write: {}", std::generic_category().message(code)), path,
                           code == ENOSPC ? "free some space" : "check the path and its permissions");
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path, mode_t mode) {
  AtomicFile file;
  file.path_ = path;
  if (path == "-") {
    file.fd_ = STDOUT_FILENO;
    return file;
  }
  file.owned_ = true;
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return usage_error(fmt::format("'{}' is a directory", path), "name a file");
    if (!S_ISREG(status.st_mode)) {
      file.fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (file.fd_ < 0) return write_error(path, errno);
      return file;
    }
    // A symbolic link keeps pointing where it points: what it names is replaced.
    if (char resolved[PATH_MAX]; realpath(path.c_str(), resolved) != nullptr) file.path_ = resolved;
  }
  for (int attempt = 0; attempt < 100; ++attempt) {
    file.temporary_ = fmt::format("{}.{}.{}.tmp", file.path_, getpid(), attempt);
    file.fd_ = open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file.fd_ >= 0) return file;
    if (errno != EEXIST) break;
  }
  const int code = errno;
  file.temporary_.clear();
  return write_error(path, code);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      owned_(std::exchange(other.owned_, false)),
      closed_(other.closed_) {}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (owned_ && fd_ >= 0) close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) {
        closed_ = true;
        break;
      }
      return write_error(path_ == "-" ? "standard output" : path_, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status AtomicFile::commit() {
  if (!owned_) return {};
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0 && errno != EINTR) return write_error(path_, errno);
  if (temporary_.empty()) return {};
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return write_error(path_, errno);
  temporary_.clear();
  return {};
}

}  // namespace culprit
