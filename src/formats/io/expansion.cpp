#include "formats/io/expansion.h"

#include <fmt/format.h>

#include <limits>

namespace culprit::formats {

void Expansion::allow(std::uint64_t file_bytes) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  const bool limited = times_ != 0 && file_bytes < (kAll - kFreeBytes) / times_;
  allowed_ = limited ? kFreeBytes + times_ * file_bytes : kAll;
}

Error Expansion::error(const std::string& file) const {
  return input_error(fmt::format("expands to more than {} times its size", times_), file,
                     fmt::format("if you trust it: --max-expansion {}, or 0 for no limit", 10 * times_));
}

}  // namespace culprit::formats
