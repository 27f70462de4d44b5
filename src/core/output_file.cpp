#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/text.h"

namespace culprit {

namespace {

constexpr std::size_t kMostNameInTemporary = 200;  // of the 255 bytes of a name
constexpr mode_t kPermissions = 0777;
constexpr int kMostAttempts = 100;

Error write_error(const std::string& path, int code) {
  return environment_error(
      fmt::format("cannot write: {}", std::generic_category().message(code)), path,
      code == ENOSPC ? "free some space" : "check the path, its permissions and limits (ulimit -f)");
}

Error exists_error(const std::string& path) {
  return usage_error(fmt::format("'{}' already exists", path), "give --force to overwrite it, or choose another name");
}

Error busy_error(const std::string& path, pid_t writer) {
  return usage_error(fmt::format("'{}' is being written by {}", path,
                                 writer > 0 ? fmt::format("process {}", writer) : "another process"),
                     "wait until it ends, or choose another name");
}

/// Marks a file as written by this process, until it is closed or the process ends. A file system without locks has no
/// such protection.
void mark_as_written(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  static_cast<void>(fcntl(fd, F_SETLK, &lock));
}

/// Who marked the regular file that an O_PATH descriptor holds; 0: a process that cannot be seen from here. Only who
/// may write a file can mark it.
std::optional<pid_t> writer_of(int handle) {
  const int fd = open(fmt::format("/proc/self/fd/{}", handle).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct flock lock {};
  lock.l_type = F_RDLCK;  // what hinders reading: a writer
  const bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
  close(fd);
  return held ? std::optional(lock.l_pid) : std::nullopt;
}

/// The process that made a file "NAME.PID.NUMBER.tmp" for the name.
std::optional<pid_t> maker_of(std::string_view file, std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!file.starts_with(name) || !file.ends_with(kEnd) || file.size() < name.size() + kEnd.size() + 1) return {};
  std::string_view middle = file.substr(name.size(), file.size() - name.size() - kEnd.size());
  const std::size_t dot = middle.rfind('.');
  if (middle.front() != '.' || dot == 0 || !parse_number<unsigned>(middle.substr(dot + 1))) return {};
  return parse_number<pid_t>(middle.substr(1, dot - 1));
}

bool is_alive(pid_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH); }

/// The descriptor that a path stands for by its name.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int fd = -1;
    const char* const end = path.data() + path.size();
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, fd);
    if (error == std::errc{} && stop == end && fd >= 0) return fd;
  }
  return std::nullopt;
}

bool stream_mode(mode_t mode) { return S_ISFIFO(mode) || S_ISCHR(mode); }

/// Whether what has the name may be opened as it is, or replaced.
Status judge(const std::string& path, mode_t mode, bool replace) {
  if (stream_mode(mode)) return {};
  if (S_ISDIR(mode)) return usage_error(fmt::format("'{}' is a directory", path), "name a file");
  if (!S_ISREG(mode) && !S_ISLNK(mode))
    return usage_error(fmt::format("'{}' is a {}", path, S_ISSOCK(mode) ? "socket" : "block device"), "name a file");
  if (!replace) return exists_error(path);
  return {};
}

/// Gives `fd` the permissions of the file of the same user that it replaces.
void keep_permissions(int fd, const struct stat& old) {
  struct stat made {};
  if (fstat(fd, &made) != 0 || made.st_uid != old.st_uid) return;
  mode_t mode = old.st_mode & kPermissions;
  // Another group must not get what the group of the old file could do.
  if (made.st_gid != old.st_gid && fchown(fd, static_cast<uid_t>(-1), old.st_gid) != 0) mode &= ~mode_t{S_IRWXG};
  static_cast<void>(fchmod(fd, mode));
}

/// Where everybody may put a pipe under a name that somebody is about to write to, as in /tmp.
bool is_planted(const struct stat& pipe, int folder) {
  struct stat shared {};
  if (!S_ISFIFO(pipe.st_mode) || pipe.st_uid == geteuid() || fstat(folder, &shared) != 0) return false;
  return (shared.st_mode & S_ISVTX) != 0 && (shared.st_mode & S_IWOTH) != 0 && pipe.st_uid != shared.st_uid;
}

}  // namespace

Status OutputFile::check(const std::string& path, bool replace) {
  struct stat status {};
  if (own_descriptor(path) || lstat(path.c_str(), &status) != 0) return {};  // the rest is seen when it is made
  return judge(path, status.st_mode, replace);
}

bool OutputFile::is_stream(const std::string& path) {
  struct stat status {};
  return own_descriptor(path) || (lstat(path.c_str(), &status) == 0 && stream_mode(status.st_mode));
}

Result<OutputFile> OutputFile::create(const std::string& path, const OutputPolicy& policy) {
  OutputFile file;
  file.path_ = path;
  file.replace_ = policy.replace;
  if (const auto fd = own_descriptor(path)) {
    if (path == "-") file.path_ = "standard output";
    file.fd_ = *fd;
    return file;
  }
  file.owned_ = true;
  const std::size_t slash = path.rfind('/');
  file.name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  if (file.name_.empty()) return usage_error(fmt::format("'{}' is no name of a file", path), "name a file");
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  file.folder_ = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file.folder_ < 0) return write_error(path, errno);
  const int handle = openat(file.folder_, file.name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (handle < 0 && errno != ENOENT) return write_error(path, errno);
  const Status opened = handle < 0 ? file.open_new(policy.mode) : file.open_existing(handle, policy.mode);
  if (handle >= 0) close(handle);
  if (!opened) return opened.error();
  return file;
}

Status OutputFile::open_existing(int handle, mode_t mode) {
  struct stat old {};
  if (fstat(handle, &old) != 0) return write_error(path_, errno);
  if (Status status = judge(path_, old.st_mode, replace_); !status) return status;
  if (stream_mode(old.st_mode)) {
    if (is_planted(old, folder_))
      return environment_error("is a pipe of another user in a folder that everybody writes to", path_,
                               "name a file or a pipe of yours");
    // By the handle: this very device or pipe, whatever has its name now.
    fd_ = open(fmt::format("/proc/self/fd/{}", handle).c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd_ < 0) return write_error(path_, errno);
    return {};
  }
  if (!S_ISREG(old.st_mode)) return open_new(mode);
  if (const auto writer = writer_of(handle)) return busy_error(path_, *writer);
  if (Status status = open_new(mode & old.st_mode); !status) return status;
  keep_permissions(fd_, old);
  return {};
}

Status OutputFile::open_new(mode_t mode) {
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = fmt::format("{}.{}.{}.tmp", name_.substr(0, kMostNameInTemporary), getpid(), attempt);
    fd_ = openat(folder_, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd_ < 0 && (errno != EEXIST || attempt == kMostAttempts)) return write_error(path_, errno);
  }
  struct stat status {};
  if (fstat(fd_, &status) != 0) return write_error(path_, errno);
  made_ = true;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  // First the mark, then the look: of two that begin at the same time at least one sees the other.
  mark_as_written(fd_);
  return look_for_others();
}

/// Finds those who are about to write the same file, and removes what the dead among them left.
Status OutputFile::look_for_others() const {
  std::error_code error;
  const std::string_view name = std::string_view(name_).substr(0, kMostNameInTemporary);
  const std::string folder = fmt::format("/proc/self/fd/{}", folder_);
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename();
    const auto maker = maker_of(file, name);
    if (!maker || *maker == getpid()) continue;
    const int handle = openat(folder_, file.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (handle < 0) continue;
    struct stat found {};
    struct stat named {};
    const bool ours = fstat(handle, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid();
    const auto writer = ours ? writer_of(handle) : std::nullopt;
    if (ours && !writer && !is_alive(*maker) && fstatat(folder_, file.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == found.st_dev && named.st_ino == found.st_ino)
      unlinkat(folder_, file.c_str(), 0);
    close(handle);
    if (writer) return busy_error(path_, *writer > 0 ? *writer : *maker);
  }
  return {};
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      folder_(std::exchange(other.folder_, -1)),
      fd_(std::exchange(other.fd_, -1)),
      made_(std::exchange(other.made_, false)),
      owned_(std::exchange(other.owned_, false)),
      replace_(other.replace_),
      closed_(other.closed_),
      bytes_(other.bytes_),
      device_(other.device_),
      inode_(other.inode_) {}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  struct stat there {};
  // Somebody else may have put another file under the temporary name.
  if (made_ && !temporary_.empty() && fstatat(folder_, temporary_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      there.st_dev == device_ && there.st_ino == inode_)
    unlinkat(folder_, temporary_.c_str(), 0);
  temporary_.clear();
  if (owned_ && fd_ >= 0) close(fd_);
  if (folder_ >= 0) close(folder_);
  fd_ = folder_ = -1;
}

Status OutputFile::write(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) {
        closed_ = true;
        break;
      }
      return write_error(path_, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
    bytes_ += static_cast<std::uint64_t>(n);
  }
  return {};
}

Status OutputFile::cut(std::uint64_t size) {
  if (!made_) return {};
  const auto end = static_cast<off_t>(size);
  if (ftruncate(fd_, end) != 0 || lseek(fd_, end, SEEK_SET) != end) return write_error(path_, errno);
  bytes_ = size;
  return {};
}

Status OutputFile::rename() const {
  // Somebody may have published a file meanwhile and write on.
  if (const int handle = openat(folder_, name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC); handle >= 0) {
    struct stat there {};
    const bool regular = fstat(handle, &there) == 0 && S_ISREG(there.st_mode);
    const auto writer = regular ? writer_of(handle) : std::nullopt;
    close(handle);
    if (writer) return busy_error(path_, *writer);
  }
  if (renameat2(folder_, temporary_.c_str(), folder_, name_.c_str(), replace_ ? 0 : RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return exists_error(path_);
  if (replace_ || (errno != EINVAL && errno != ENOSYS)) return write_error(path_, errno);
  // A file system that cannot do this in one step.
  if (faccessat(folder_, name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return exists_error(path_);
  if (renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0) return write_error(path_, errno);
  return {};
}

Status OutputFile::publish() {
  if (temporary_.empty()) return {};
  if (Status status = rename(); !status) return status;
  temporary_.clear();
  return {};
}

Status OutputFile::commit() {
  if (owned_ && fd_ >= 0)
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return write_error(path_, errno);
  return publish();
}

}  // namespace culprit
