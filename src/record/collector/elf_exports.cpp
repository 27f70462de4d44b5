#include "record/collector/elf_exports.h"

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>

#include "record/collector/elf_file.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostSegments = 64;
constexpr std::size_t kMostSections = 4096;
constexpr std::uint64_t kMostTable = std::uint64_t{64} << 20;  // bytes of a section that is read
constexpr std::uint64_t kMostCode = std::uint64_t{64} << 20;

void read_symbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, std::span<const std::string_view> names,
                  ElfExports& out) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const auto count = static_cast<int>(std::min<std::uint64_t>(header.sh_size / header.sh_entsize, 1U << 20));
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
    // An address that the library chooses when it is asked is none that could be called.
    if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC && GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || std::ranges::find(names, std::string_view(name)) == names.end()) continue;
    // Of several versions the default one comes last in no particular order; they take the same arguments.
    if (!out.address_of(name)) out.symbols.push_back({name, symbol.st_value});
  }
}

void read_note(Elf_Scn* section, const GElf_Shdr& header, ElfExports& out) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr) return;
  GElf_Nhdr note;
  std::size_t name = 0;
  std::size_t text = 0;
  for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &text)) > 0;) {
    if (note.n_type != NT_GNU_BUILD_ID || text + note.n_descsz > data->d_size) continue;
    out.build_id.assign(static_cast<const char*>(data->d_buf) + text, note.n_descsz);
    out.build_id_at = header.sh_addr + text;
  }
}

}  // namespace

std::optional<std::uint64_t> ElfExports::address_of(std::string_view name) const {
  const auto found = std::ranges::find(symbols, name, &Symbol::name);
  if (found == symbols.end()) return std::nullopt;
  return found->address;
}

std::optional<std::uint64_t> ElfExports::offset_of(std::uint64_t address) const {
  for (const Segment& s : segments)
    if (address >= s.address && address - s.address < s.size) return s.offset + (address - s.address);
  return std::nullopt;
}

ElfExports read_exports(const std::string& file, std::span<const std::string_view> names) {
  ElfExports out;
  const ElfFile opened(file);
  if (opened.elf == nullptr || elf_kind(opened.elf) != ELF_K_ELF) return out;
  GElf_Ehdr head;
  if (gelf_getehdr(opened.elf, &head) == nullptr) return out;
  std::size_t count = 0;
  if (elf_getphdrnum(opened.elf, &count) != 0) return out;
  for (std::size_t i = 0; i < std::min(count, kMostSegments); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(opened.elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    out.segments.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz, (segment.p_flags & PF_X) != 0});
  }
  Elf_Scn* section = nullptr;
  std::uint64_t read = 0;
  for (std::size_t s = 0; s < kMostSections && (section = elf_nextscn(opened.elf, section)) != nullptr; ++s) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_NOTE) continue;
    // Who is recorded wrote the file: all that is read of it is bounded.
    if (header.sh_size > kMostTable - read) break;
    read += header.sh_size;
    if (header.sh_type == SHT_DYNSYM) read_symbols(opened.elf, section, header, names, out);
    if (header.sh_type == SHT_NOTE) read_note(section, header, out);
  }
  out.machine = head.e_machine;
  return out;
}

std::optional<std::uint64_t> find_code(const std::string& file, const ElfExports& elf,
                                       std::span<const std::uint8_t> pattern) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<std::uint64_t> found;
  for (const ElfExports::Segment& s : elf.segments) {
    if (!s.executable || found) continue;
    std::vector<std::uint8_t> code(std::min(s.size, kMostCode));
    const ssize_t got = pread(fd, code.data(), code.size(), static_cast<off_t>(s.offset));
    code.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    const auto at = std::search(code.begin(), code.end(), pattern.begin(), pattern.end());
    if (at != code.end()) found = s.address + static_cast<std::uint64_t>(at - code.begin());
  }
  close(fd);
  return found;
}

std::optional<std::uint64_t> load_base(const Mapping& mapping, const ElfExports& elf) {
  constexpr std::uint64_t kPage = 4096;
  for (const ElfExports::Segment& s : elf.segments) {
    // Whole pages are mapped, also where a segment begins inside of one.
    const std::uint64_t first = s.offset / kPage * kPage;
    if (!s.executable || mapping.offset < first || mapping.offset >= s.offset + s.size) continue;
    const std::uint64_t address = s.address - (s.offset - first) + (mapping.offset - first);
    if (address <= mapping.begin) return mapping.begin - address;
  }
  return std::nullopt;
}

}  // namespace culprit::record
