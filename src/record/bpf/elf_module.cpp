#include "record/bpf/elf_module.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "record/collector/build_id.h"
#include "record/collector/elf_file.h"

namespace culprit::record::bpf {

namespace {

constexpr std::size_t kLongestName = 160;
constexpr std::size_t kLongestSymbol = 4096;
constexpr std::uint64_t kMostSymbols = 1U << 24;
constexpr std::size_t kPiece = std::size_t{64} << 10;           // of a symbol table in memory
constexpr std::uint64_t kMostMatches = std::uint64_t{1} << 25;  // of a table in which everything holds everything

/// Bytes that were read; 0 at the end of the file.
std::size_t read_at(int fd, std::uint64_t offset, void* to, std::size_t size) {
  if (offset > std::uint64_t{1} << 48) return 0;
  const ssize_t got = pread(fd, to, size, static_cast<off_t>(offset));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

/// The function that holds an address, as far as the table has been read.
struct Holder {
  std::uint64_t begin = 0;
  std::uint32_t name = 0;  // in the section of names
  bool found = false;
};

/// Reads through one symbol table; whether it has functions.
template <class Symbol>
bool match(int fd, const GElf_Shdr& table, std::span<const std::uint64_t> addresses, std::vector<Holder>& holders) {
  std::vector<Symbol> piece(kPiece / sizeof(Symbol));
  const std::uint64_t count = std::min<std::uint64_t>(table.sh_size / sizeof(Symbol), kMostSymbols);
  std::uint64_t matches = 0;
  bool any = false;
  for (std::uint64_t done = 0; done < count && matches < kMostMatches;) {
    const std::size_t wanted = std::min<std::uint64_t>(count - done, piece.size());
    const std::size_t got =
        read_at(fd, table.sh_offset + done * sizeof(Symbol), piece.data(), wanted * sizeof(Symbol)) / sizeof(Symbol);
    if (got == 0) break;
    done += got;
    for (const Symbol& symbol : std::span(piece).first(got)) {
      const auto type = symbol.st_info & 0xf;
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
      any = true;
      const std::uint64_t begin = symbol.st_value;
      const std::uint64_t size = std::max<std::uint64_t>(symbol.st_size, 1);
      if (begin > addresses.back() || (begin < addresses.front() && addresses.front() - begin >= size)) continue;
      for (auto at = std::ranges::lower_bound(addresses, begin); at != addresses.end() && *at - begin < size; ++at) {
        Holder& holder = holders[static_cast<std::size_t>(at - addresses.begin())];
        ++matches;
        if (!holder.found || holder.begin <= begin) holder = {begin, symbol.st_name, true};
      }
    }
  }
  return any;
}

std::string symbol_at(int fd, const GElf_Shdr& names, std::uint32_t offset) {
  if (offset >= names.sh_size) return {};
  std::string text(std::min<std::uint64_t>(names.sh_size - offset, kLongestSymbol), '\0');
  text.resize(read_at(fd, names.sh_offset + offset, text.data(), text.size()));
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

std::string readable_symbol(std::string_view symbol) {
  std::string name(symbol);
  int status = 0;
  if (char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status); text != nullptr) {
    name = text;
    std::free(text);
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '<') ++depth;
      if (name[i] == '>' && depth > 0) --depth;
      if (name[i] == '(' && depth == 0 && i > 0 && name.compare(i, 11, "(anonymous ") != 0) {
        name.resize(i);
        break;
      }
    }
  }
  std::ranges::replace(name, ';', ':');
  std::ranges::replace(name, '\n', ' ');
  if (name.size() > kLongestName) name.resize(kLongestName);
  return name;
}

std::uint64_t ElfModule::address_of(std::uint64_t file_offset) const {
  for (const Segment& segment : segments)
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size)
      return file_offset - segment.offset + segment.address;
  return file_offset;
}

ElfModule read_elf_module(const std::string& file_path, std::string path) {
  ElfModule module;
  module.path = std::move(path);
  if (file_path.empty()) return module;
  const ElfFile file(file_path);
  if (file.elf == nullptr || elf_kind(file.elf) != ELF_K_ELF) return module;
  module.build_id = bytes_of_hex(read_build_id(file_path).value_or(""));
  std::size_t segments = 0;
  if (elf_getphdrnum(file.elf, &segments) == 0) {
    for (std::size_t i = 0; i < segments; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(file.elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
        module.segments.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
  }
  return module;
}

std::vector<std::string> function_symbols(const std::string& file_path, std::span<const std::uint64_t> addresses) {
  std::vector<std::string> symbols(addresses.size());
  if (addresses.empty()) return symbols;
  const ElfFile file(file_path);
  if (file.elf == nullptr || elf_kind(file.elf) != ELF_K_ELF) return symbols;
  const char* ident = elf_getident(file.elf, nullptr);
  const bool wide = gelf_getclass(file.elf) == ELFCLASS64;
  if (ident == nullptr || ident[EI_DATA] != (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB))
    return symbols;
  // The table of a stripped file has only what other files may call.
  for (const auto wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
    bool any = false;
    Elf_Scn* section = nullptr;
    while (!any && (section = elf_nextscn(file.elf, section)) != nullptr) {
      GElf_Shdr table;
      GElf_Shdr names;
      if (gelf_getshdr(section, &table) == nullptr || table.sh_type != static_cast<GElf_Word>(wanted)) continue;
      if (table.sh_entsize != (wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym))) continue;
      Elf_Scn* text = elf_getscn(file.elf, table.sh_link);
      if (text == nullptr || gelf_getshdr(text, &names) == nullptr) continue;
      std::vector<Holder> holders(addresses.size());
      any = wide ? match<Elf64_Sym>(file.fd, table, addresses, holders)
                 : match<Elf32_Sym>(file.fd, table, addresses, holders);
      for (std::size_t i = 0; i < holders.size(); ++i)
        if (holders[i].found) symbols[i] = symbol_at(file.fd, names, holders[i].name);
    }
    if (any) break;
  }
  return symbols;
}

}  // namespace culprit::record::bpf
