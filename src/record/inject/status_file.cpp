#include "record/inject/status_file.h"

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

}  // namespace culprit::record::inject
