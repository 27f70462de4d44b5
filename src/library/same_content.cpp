#include "library/same_content.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "core/hash.h"
#include "formats/io/input.h"

namespace culprit::library {

namespace fs = std::filesystem;

namespace {

/// As much text as there is room for, less at its end; nothing when it cannot be read.
std::optional<std::string_view> next_chunk(formats::Input& input, std::string& room) {
  std::size_t filled = 0;
  while (filled < room.size()) {
    const auto n = input.read(room.data() + filled, room.size() - filled);
    if (!n) return std::nullopt;
    if (*n == 0) break;
    filled += *n;
  }
  return std::string_view(room).substr(0, filled);
}

}  // namespace

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
  auto first = formats::Input::open(a);
  auto second = formats::Input::open(b);
  if (!first || !second) return false;
  const bool plain =
      first->compression() == formats::Compression::none && second->compression() == formats::Compression::none;
  if (plain && first->file_bytes() != second->file_bytes()) return false;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  std::string x(kChunk, '\0');
  std::string y(kChunk, '\0');
  while (true) {
    const std::optional<std::string_view> one = next_chunk(*first, x);
    const std::optional<std::string_view> other = next_chunk(*second, y);
    if (!one || !other || *one != *other) return false;
    if (one->empty()) return true;
  }
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
