#include "record/collector/kernel_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/text.h"

namespace culprit::record {

namespace {

constexpr std::size_t kLargest = std::size_t{4} << 20;

}  // namespace

// Non-blocking: a pipe that stands where a file is expected must not stop the recorder.
KernelFile::KernelFile(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), error_(fd_ < 0 ? errno : 0) {}

KernelFile::KernelFile(KernelFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), error_(other.error_) {}

KernelFile& KernelFile::operator=(KernelFile&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) ::close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  error_ = other.error_;
  return *this;
}

KernelFile::~KernelFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string_view KernelFile::read(std::vector<char>& buffer) {
  if (fd_ < 0) return {};
  if (buffer.size() < 4096) buffer.resize(4096);
  std::size_t size = 0;
  for (;;) {
    const ssize_t n = ::pread(fd_, buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (n < 0) {
      if (errno == EINTR) continue;
      error_ = errno;
      return {};
    }
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
    // A short answer is the end of most files, but not of those that are made page by page; only 0 is sure. Small
    // answers are taken as the end, which saves every second call.
    if (static_cast<std::size_t>(n) < 2048 && size < buffer.size()) break;
    if (size < buffer.size()) continue;
    if (size >= kLargest) break;
    buffer.resize(buffer.size() * 2);
  }
  error_ = 0;
  return {buffer.data(), size};
}

std::optional<std::string> read_text(const std::string& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  char part[8192];
  bool fine = true;
  while (text.size() < limit) {
    const ssize_t n = ::read(fd, part, std::min(sizeof part, limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fine = false;
    if (n <= 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  ::close(fd);
  if (!fine) return std::nullopt;
  return text;
}

std::string read_word(const std::string& path) {
  const auto text = read_text(path, 64 * 1024);
  if (!text) return {};
  std::string_view word = *text;  // some files of the kernel end in a NUL
  while (word.ends_with('\0')) word.remove_suffix(1);
  return std::string(trim(word));
}

std::optional<std::int64_t> read_number(const std::string& path) { return parse_number<std::int64_t>(read_word(path)); }

std::vector<std::string> list_folder(const std::string& path, std::size_t limit) {
  std::vector<std::string> names;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (names.size() < limit) {
    const dirent* entry = ::readdir(folder);  // NOLINT(concurrency-mt-unsafe): a handle of its own
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(folder);
  std::ranges::sort(names);
  return names;
}

std::optional<std::size_t> count_cpu_list(std::string_view list) {
  list = trim(list);
  std::size_t count = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    const std::size_t dash = range.find('-');
    const auto first = parse_number<std::uint64_t>(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<std::uint64_t>(range.substr(dash + 1));
    constexpr std::uint64_t kMost = 1 << 20;
    if (!first || !last || *last < *first || *last > kMost) return std::nullopt;
    count += static_cast<std::size_t>(*last - *first) + 1;
  }
  return count;
}

}  // namespace culprit::record
