#include "library/same_content.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>

#include "core/hash.h"

namespace culprit::library {

namespace fs = std::filesystem;

FileState state_of(const std::string& path) {
  FileState state;
  state.path = path;
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return state;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  state.regular = true;
  state.device = status.st_dev;
  state.inode = status.st_ino;
  state.bytes = status.st_size;
  state.changed_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
  return state;
}

bool same_content(const std::string& a, const std::string& b) {
  std::error_code code;
  if (!fs::is_regular_file(a, code) || !fs::is_regular_file(b, code)) return false;
  if (fs::equivalent(a, b, code)) return true;
  const std::uintmax_t size = fs::file_size(a, code);
  if (code || size != fs::file_size(b, code) || code) return false;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  std::ifstream first(a, std::ios::binary);
  std::ifstream second(b, std::ios::binary);
  std::string x(kChunk, '\0');
  std::string y(kChunk, '\0');
  while (first && second) {
    first.read(x.data(), kChunk);
    second.read(y.data(), kChunk);
    const auto n = static_cast<std::size_t>(first.gcount());
    if (first.gcount() != second.gcount() || std::string_view(x).substr(0, n) != std::string_view(y).substr(0, n))
      return false;
  }
  return first.eof() && second.eof();
}

std::vector<std::vector<std::uint64_t>> content_numbers(const std::vector<std::vector<FileState>>& lists) {
  std::vector<const FileState*> known;
  std::vector<std::vector<std::uint64_t>> numbers(lists.size());
  for (std::size_t l = 0; l < lists.size(); ++l)
    for (const FileState& file : lists[l]) {
      const bool as_read = file.regular && state_of(file.path) == file;
      const auto same = std::ranges::find_if(known, [&](const FileState* other) {
        return other != nullptr && as_read && (*other == file || same_content(other->path, file.path));
      });
      numbers[l].push_back(static_cast<std::uint64_t>(same - known.begin()) + 1);
      known.push_back(as_read ? &file : nullptr);
    }
  return numbers;
}

std::uint64_t digest_of(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);
  return hash_of(std::span<const std::uint64_t>(numbers));
}

}  // namespace culprit::library
