#include "record/collector/mappings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/text.h"

namespace culprit::record {

namespace {

/// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6"; nothing: no code.
std::optional<Mapping> read_mapping(std::string_view line) {
  Mapping mapping;
  const std::string_view range = take_word(line);
  const std::string_view mode = take_word(line);
  if (mode.find('x') == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view text, std::uint64_t& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value, 16).ec == std::errc();
  };
  const std::size_t dash = std::min(range.find('-'), range.size());
  if (!number(range.substr(0, dash), mapping.begin) ||
      !number(range.substr(std::min(dash + 1, range.size())), mapping.end))
    return std::nullopt;
  if (!number(take_word(line), mapping.offset)) return std::nullopt;
  const std::string_view device = take_word(line);
  const std::string_view inode = take_word(line);
  mapping.identity = fmt::format("{} {}", device, inode);
  mapping.path = trim(line);
  return mapping;
}

}  // namespace

std::vector<Mapping> executable_mappings(std::int64_t pid, const std::string& proc) {
  std::vector<Mapping> mappings;
  const auto text = read_beginning(fmt::format("{}/{}/maps", proc, pid));
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty())
    if (auto mapping = read_mapping(take_line(rest))) mappings.push_back(std::move(*mapping));
  return mappings;
}

std::optional<std::uint64_t> executable_kib(std::int64_t pid, const std::string& proc) {
  const auto text = read_beginning(fmt::format("{}/{}/status", proc, pid));
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  std::uint64_t sum = 0;
  bool known = false;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    const std::string_view key = take_word(line);
    if (key != "VmExe:" && key != "VmLib:") continue;
    const auto kib = parse_number<std::uint64_t>(take_word(line));
    if (!kib) return std::nullopt;
    sum += *kib;
    known = true;
  }
  return known ? std::optional(sum) : std::nullopt;
}

TargetFile open_mapped(std::int64_t pid, const Mapping& mapping) {
  TargetFile file = open_target_file(fmt::format("/proc/{}/root", pid), mapping.path);
  if (file) return file;
  file = open_target_file("/", mapping.path);
  return file.identity() == mapping.identity ? std::move(file) : TargetFile();
}

}  // namespace culprit::record
