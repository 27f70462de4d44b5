#include "faults/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace culprit::faults {

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr std::size_t kMost = 16U << 20U;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 8192> buffer{};
  ssize_t got = 0;
  while ((got = read(fd, buffer.data(), buffer.size())) > 0 && text.size() < kMost)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

Status write_small_file(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return environment_error(fmt::format("cannot be written: {}", std::strerror(errno)), path);
  const ssize_t put = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (put == static_cast<ssize_t>(text.size())) return {};
  return environment_error(fmt::format("refuses '{}': {}", text, put < 0 ? std::strerror(error) : "cut off"), path);
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  const auto words = split_words(text);
  if (words.size() != 1) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = words[0].data() + words[0].size();
  const auto [stop, error] = std::from_chars(words[0].data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_small_file(path);
  return text ? parse_number(*text) : std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  for (const std::string_view line : split_lines(text)) {
    const auto words = split_words(line);
    if (words.size() >= 2 && words[0] == key) return parse_number(words[1]);
  }
  return std::nullopt;
}

namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    const std::size_t end = text.find_first_of(separators, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end);
  }
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) { return split(text, "\n"); }
std::vector<std::string_view> split_words(std::string_view text) { return split(text, " \t\n\r"); }

}  // namespace culprit::faults
