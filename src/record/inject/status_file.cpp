#include "record/inject/status_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <fstream>

namespace culprit::record::inject {

std::string value_in(const std::filesystem::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t at = line.find_first_not_of(" \t", name.size());
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

std::int64_t number_in(const std::filesystem::path& path, std::string_view name) {
  const std::string value = value_in(path, name);
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

std::uint64_t start_of_stack(std::int64_t pid) {
  constexpr int kStartStack = 28;  // of proc_pid_stat(5), where the name, in parentheses, is the second
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  std::size_t at = text.rfind(')');
  for (int field = 2; field < kStartStack && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  std::uint64_t value = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  return value;
}

}  // namespace culprit::record::inject
