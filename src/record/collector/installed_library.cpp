#include "record/collector/installed_library.h"

#include <filesystem>
#include <system_error>

namespace culprit::record {

Result<std::string> installed_library(const std::string& name) {
  std::error_code code;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path here = self.parent_path();
  for (const char* place : {".", "../lib/culprit", "../lib64/culprit"}) {
    const std::filesystem::path path = (here / place / name).lexically_normal();
    std::error_code absent;  // of one place says nothing of the next
    if (!code && std::filesystem::is_regular_file(path, absent)) return path.string();
  }
  return environment_error(name + " is missing", here.string(),
                           "build it (make build) or put it into ../lib/culprit beside the program's folder");
}

}  // namespace culprit::record
