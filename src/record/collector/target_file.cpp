#include "record/collector/target_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace culprit::record {

namespace {

TargetFile open_below(const std::string& root, const std::string& path, std::uint64_t flags, std::uint64_t resolve) {
  const int folder = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return {};
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | flags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  const long fd = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
  close(folder);
  return fd < 0 ? TargetFile() : TargetFile(static_cast<int>(fd));
}

}  // namespace

TargetFile::~TargetFile() {
  if (fd_ >= 0) close(fd_);
}

std::string TargetFile::path() const { return fd_ < 0 ? std::string() : fmt::format("/proc/self/fd/{}", fd_); }

std::string TargetFile::identity() const {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) return {};
  return fmt::format("{:02x}:{:02x} {}", major(status.st_dev), minor(status.st_dev), status.st_ino);
}

TargetFile open_target_file(const std::string& root, const std::string& path) {
  TargetFile file = open_below(root, path, 0, RESOLVE_NO_SYMLINKS);
  struct stat status {};
  if (!file || fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

TargetFile open_target_folder(const std::string& root, const std::string& path) {
  return open_below(root, path, O_DIRECTORY, 0);
}

}  // namespace culprit::record
