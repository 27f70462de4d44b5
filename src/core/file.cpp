#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/units.h"

namespace culprit {

namespace {

/// Appends up to `most` bytes of `path` to `text`; errno, or 0.
int append(const std::string& path, std::size_t most, std::string& text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno;
  constexpr std::size_t kPart = 8192;
  int error = 0;
  while (text.size() < most) {
    const std::size_t have = text.size();
    text.resize(have + std::min(kPart, most - have));
    const ssize_t got = ::read(fd, text.data() + have, text.size() - have);
    text.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
  }
  ::close(fd);
  return error;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most) {
  std::string text;
  if (const int error = append(path, most + 1, text); error != 0)
    return input_error(fmt::format("cannot be read: {}", errno_text(error)), path);
  if (text.size() > most)
    return input_error(fmt::format("is larger than {}", format_bytes(static_cast<double>(most))), path);
  return text;
}

std::optional<std::string> read_beginning(const std::string& path, std::size_t most) {
  std::string text;
  if (append(path, most, text) != 0) return std::nullopt;
  return text;
}

}  // namespace culprit
