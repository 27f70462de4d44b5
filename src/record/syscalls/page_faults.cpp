#include "record/syscalls/page_faults.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "core/file.h"

namespace culprit::record::syscalls {

std::optional<PageFaults> parse_page_faults(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream rest{std::string(stat.substr(name_end + 1))};
  std::string skipped;
  for (int field = 3; field < 10; ++field) rest >> skipped;
  PageFaults faults;
  rest >> faults.minor >> skipped >> faults.major;
  if (!rest || faults.minor < 0 || faults.major < 0) return std::nullopt;
  return faults;
}

std::optional<PageFaults> read_page_faults(std::int64_t pid) {
  const auto text = read_beginning(fmt::format("/proc/{}/stat", pid));
  return text ? parse_page_faults(*text) : std::nullopt;
}

}  // namespace culprit::record::syscalls
