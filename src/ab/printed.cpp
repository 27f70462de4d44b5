#include "ab/printed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/text.h"

namespace culprit::ab {

std::string last_lines(const std::string& file) {
  constexpr std::size_t kMost = 10;
  const auto text = read_file(file);
  if (!text) return {};
  std::vector<std::string_view> lines = split_lines(*text);
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace culprit::ab
