#include "record/collector/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace culprit::record {

namespace {

bool read_at(int fd, void* to, std::size_t size, std::uint64_t offset) {
  if (offset > (std::uint64_t{1} << 48)) return false;
  return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::optional<std::string> id_in_notes(std::string_view notes) {
  const auto padded = [](std::uint64_t n) { return (n + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    notes.remove_prefix(sizeof header);
    const std::uint64_t size = padded(header.n_namesz) + padded(header.n_descsz);
    if (size > notes.size()) return std::nullopt;
    const std::string_view name = notes.substr(0, header.n_namesz);
    const std::string_view id = notes.substr(padded(header.n_namesz), header.n_descsz);
    constexpr std::size_t kLongest = 64;
    if (header.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4) && id.size() <= kLongest) {
      std::string text;
      for (const char c : id) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return text;
    }
    notes.remove_prefix(size);
  }
  return std::nullopt;
}

std::optional<std::string> id_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  Elf64_Ehdr header;
  if (!read_at(fd, &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  constexpr unsigned kMostSegments = 128;
  for (unsigned i = 0; i < header.e_phnum && i < kMostSegments; ++i) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return std::nullopt;
    constexpr std::uint64_t kMostNotes = 64 * 1024;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::vector<char> notes(segment.p_filesz);
    if (!read_at(fd, notes.data(), notes.size(), segment.p_offset)) continue;
    if (auto id = id_in_notes({notes.data(), notes.size()})) return id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> read_build_id(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  auto id = id_of(fd);
  ::close(fd);
  return id;
}

}  // namespace culprit::record
