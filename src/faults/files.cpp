#include "faults/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/file.h"
#include "core/text.h"

namespace culprit::faults {

Status write_small_file(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return environment_error(fmt::format("cannot be written: {}", errno_text(errno)), path);
  const ssize_t put = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (put == static_cast<ssize_t>(text.size())) return {};
  return environment_error(fmt::format("refuses '{}': {}", text, put < 0 ? errno_text(error) : "cut off"), path);
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_beginning(path);
  return text ? parse_number<std::int64_t>(trim(*text)) : std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  for (const std::string_view line : split_lines(text)) {
    const auto words = split_words(line);
    if (words.size() >= 2 && words[0] == key) return parse_number<std::int64_t>(words[1]);
  }
  return std::nullopt;
}

}  // namespace culprit::faults
