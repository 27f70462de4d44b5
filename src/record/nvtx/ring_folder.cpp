#include "record/nvtx/ring_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace culprit::record::nvtx {

namespace {

constexpr std::string_view kPrefix = "culprit-nvtx-";
constexpr std::size_t kMostFiles = 4096;
constexpr int kMostEntries = 65536;

struct CloseFolder {
  void operator()(DIR* dir) const { closedir(dir); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int fd) {
  const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* dir = own < 0 ? nullptr : fdopendir(own);
  if (dir == nullptr && own >= 0) close(own);
  return Folder(dir);
}

std::vector<std::string> names_in(int fd, std::string_view suffix) {
  std::vector<std::string> out;
  const Folder dir = open_folder(fd);
  for (int i = 0; dir && i < kMostEntries && out.size() < kMostFiles; ++i) {
    const dirent* entry = readdir(dir.get());  // NOLINT(concurrency-mt-unsafe): a handle of its own
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name.ends_with(suffix)) out.emplace_back(name);
  }
  std::ranges::sort(out);
  return out;
}

void remove_folder(const std::string& path, int fd) {
  for (int round = 0; round < 16; ++round) {
    const std::vector<std::string> names = names_in(fd, ".ring");
    for (const std::string& name : names) unlinkat(fd, name.c_str(), 0);
    if (names.empty()) break;
  }
  rmdir(path.c_str());
}

/// The recorder that made a folder of this name.
std::optional<pid_t> owner_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (code != std::errc() || pid <= 0 || end == name.data() + name.size() || *end != '-') return std::nullopt;
  return pid;
}

/// Removes folders of this user whose recorder is gone.
void remove_leftovers(const std::string& parent) {
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  for (const std::string& name : names_in(fd, "")) {
    const std::optional<pid_t> owner = owner_of(name);
    if (!owner || kill(*owner, 0) == 0 || errno != ESRCH) continue;
    const int folder = openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid())
      remove_folder(fmt::format("{}/{}", parent, name), folder);
    if (folder >= 0) close(folder);
  }
  close(fd);
}

std::vector<std::string> usual_parents() {
  std::vector<std::string> out = {"/dev/shm"};
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"})
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    if (const char* value = std::getenv(variable); value != nullptr && value[0] == '/') out.emplace_back(value);
  out.emplace_back("/tmp");
  return out;
}

}  // namespace

Result<RingFolder> RingFolder::create(const std::string& parent) {
  int code = ENOENT;
  std::string last;
  for (const std::string& in : parent.empty() ? usual_parents() : std::vector<std::string>{parent}) {
    remove_leftovers(in);
    std::string path = in + "/" + std::string(kPrefix) + std::to_string(getpid()) + "-XXXXXX";
    last = in;
    if (path.size() > 200) continue;  // the library takes no longer one
    if (mkdtemp(path.data()) == nullptr) {
      code = errno;
      continue;
    }
    RingFolder out;
    out.path_ = std::move(path);
    out.fd_ = ::open(out.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out.fd_ >= 0) return out;
    code = errno;
  }
  return environment_error("cannot make a folder for NVTX rings: " + std::generic_category().message(code), last,
                           "set TMPDIR to a folder that can be written");
}

RingFolder::RingFolder(RingFolder&& other) noexcept { *this = std::move(other); }

RingFolder& RingFolder::operator=(RingFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

RingFolder::~RingFolder() {
  if (fd_ < 0) return;
  remove_folder(path_, fd_);
  close(fd_);
}

std::vector<std::string> RingFolder::files() const { return names_in(fd_, ".ring"); }

void RingFolder::remove(const std::string& file) const { unlinkat(fd_, file.c_str(), 0); }

}  // namespace culprit::record::nvtx
