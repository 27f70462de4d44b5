#include "trace/code_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/python_path.h"

namespace culprit {

std::optional<std::string_view> file_of_unnamed(std::string_view function) {
  constexpr std::string_view kAt = "+0x";
  const std::size_t at = function.rfind(kAt);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view address = function.substr(at + kAt.size());
  const bool is_address = !address.empty() && std::ranges::all_of(address, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return is_address ? std::optional(function.substr(0, at)) : std::nullopt;
}

std::optional<std::string> python_function(std::string_view function) {
  constexpr std::string_view kMapped = "py::";
  if (function.starts_with(kMapped)) {
    const std::string_view rest = function.substr(kMapped.size());
    const std::size_t at = rest.find(':');
    if (at == 0 || at == std::string_view::npos) return std::nullopt;
    return fmt::format("{} ({})", rest.substr(0, at), short_python_path(rest.substr(at + 1)));
  }
  const std::size_t open = function.find(" (");
  const std::size_t line = function.rfind(':');
  if (open == std::string_view::npos || line == std::string_view::npos || line < open || !function.ends_with(')'))
    return std::nullopt;
  const std::string_view file = function.substr(open + 2, line - open - 2);
  const std::string_view number = function.substr(line + 1, function.size() - line - 2);
  const bool is_line = !number.empty() && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  // Scripts have any name, usually without a dot; other languages' sources have one.
  const bool is_script = file.substr(file.rfind('/') + 1).find_first_of(".:") == std::string_view::npos;
  if (!is_line || file.empty() || !(file.ends_with(".py") || file.starts_with('<') || is_script)) return std::nullopt;
  return fmt::format("{})", function.substr(0, line));
}

}  // namespace culprit
