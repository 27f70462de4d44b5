#include "record/environment/disturbances.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/file.h"
#include "core/text.h"

namespace culprit::record {

namespace {

constexpr std::string_view kEnding = ".undo";

/// The third line of the file begins with the injector's process id.
bool is_at_work(const std::string& file) {
  const auto text = read_beginning(file);
  if (!text) return false;
  std::string_view rest = *text;
  for (int line = 0; line < 2; ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
  const auto pid = parse_number<int>(rest.substr(0, rest.find_first_of(" \n")));
  return pid && *pid > 0 && (::kill(*pid, 0) == 0 || errno == EPERM);
}

}  // namespace

std::vector<std::string> usual_fault_folders() {
  std::vector<std::string> folders = {"/run/culprit"};
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (runtime != nullptr && *runtime == '/') folders.push_back(std::string(runtime) + "/culprit");
  if (::geteuid() != 0) folders.push_back("/var/tmp/culprit-" + std::to_string(::geteuid()));
  return folders;
}

std::set<std::string> running_faults(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const std::size_t dash = name.rfind('-');
      if (name.ends_with(kEnding) && dash != std::string::npos && is_at_work(it->path().string()))
        names.insert(name.substr(0, dash));
    }
  }
  return names;
}

}  // namespace culprit::record
