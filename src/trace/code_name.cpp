#include "trace/code_name.h"

#include <algorithm>

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

}  // namespace culprit
