#include "record/syscalls/disk_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace culprit::record::syscalls {

std::string device_name(std::uint32_t device) {
  const std::string number = fmt::format("{}:{}", device >> 20, device & 0xfffff);
  std::error_code error;
  const auto link = std::filesystem::read_symlink("/sys/dev/block/" + number, error);
  return error || link.filename().empty() ? number : link.filename().string();
}

std::string operation_name(std::uint32_t operation) {
  switch (operation) {
    case 0:
      return "read";
    case 1:
      return "write";
    case 2:
      return "flush";
    case 3:
      return "discard";
    case 9:
      return "write_zeroes";
    default:
      return fmt::format("operation_{}", operation);
  }
}

}  // namespace culprit::record::syscalls
