#include "record/python/python_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "record/collector/mappings.h"

namespace culprit::record::python {

namespace {

constexpr std::size_t kMostTitle = 4096;
constexpr std::size_t kMostTasks = 65536;

/// Ids of a task in each namespace it is in, the outermost first.
std::vector<std::int32_t> namespace_ids(const std::filesystem::path& task) {
  std::vector<std::int32_t> ids;
  std::ifstream file(task / "status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const char* at = line.data() + 6;
    const char* end = line.data() + line.size();
    while (at < end) {
      std::int32_t id = 0;
      const auto [next, error] = std::from_chars(at, end, id);
      if (error == std::errc()) ids.push_back(id);
      at = error == std::errc() ? next : at + 1;
    }
    break;
  }
  return ids;
}

}  // namespace

bool runs_python(std::int64_t pid) { return has_loaded(pid, {"libpython3", "python3"}); }

bool has_loaded(std::int64_t pid, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(executable_mappings(pid), [&](const Mapping& mapping) {
    const std::string_view name = std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1);
    return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
  });
}

std::string title_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string text(kMostTitle, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  for (char& c : text) c = c == '\0' ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  // Of an environment that has the name of a server.
  std::size_t word = 0;
  for (const bool is_program : {true, false}) {
    const std::string_view path = std::string_view(text).substr(word, text.find(' ', word) - word);
    const std::size_t folders = path.rfind('/') + 1;
    const bool is_installed = path.substr(0, folders).ends_with("/bin/");
    if (is_program || is_installed) text.erase(word, folders);
    word = std::min(text.find(' ', word), text.size() - 1) + 1;
  }
  return text;
}

bool has_own_namespace(std::int64_t pid) { return namespace_ids(fmt::format("/proc/{}", pid)).size() > 1; }

std::unordered_map<std::int32_t, std::int32_t> threads_in(std::int64_t pid) {
  std::unordered_map<std::int32_t, std::int32_t> threads;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), code)) {
    if (threads.size() >= kMostTasks) break;
    const std::vector<std::int32_t> ids = namespace_ids(entry.path());
    if (!ids.empty()) threads.emplace(ids.back(), ids.front());
  }
  return threads;
}

}  // namespace culprit::record::python
