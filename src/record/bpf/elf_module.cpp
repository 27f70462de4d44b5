#include "record/bpf/elf_module.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "record/collector/build_id.h"

namespace culprit::record::bpf {

namespace {

constexpr std::size_t kLongestName = 160;
constexpr std::size_t kMostNames = std::size_t{256} << 20;

/// A descriptor and libelf's handle of a file, closed in the right order.
struct ElfFile {
  int fd = -1;
  Elf* elf = nullptr;

  explicit ElfFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd >= 0) elf = elf_begin(fd, ELF_C_READ, nullptr);
  }
  ~ElfFile() {
    if (elf != nullptr) elf_end(elf);
    if (fd >= 0) close(fd);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
};

/// Functions of one symbol table.
void read_functions(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, FunctionTable& table) {
  Elf_Data* data = elf_getdata(section, nullptr);
  Elf_Scn* text_section = elf_getscn(elf, header.sh_link);
  Elf_Data* text = text_section != nullptr ? elf_getdata(text_section, nullptr) : nullptr;
  if (data == nullptr || text == nullptr || text->d_buf == nullptr || header.sh_entsize == 0) return;
  const std::string_view names(static_cast<const char*>(text->d_buf), text->d_size);
  const auto count = static_cast<int>(std::min<std::uint64_t>(header.sh_size / header.sh_entsize, 1U << 24));
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr) break;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    if (symbol.st_name >= names.size()) continue;
    const std::string_view name = names.substr(symbol.st_name);
    table.add(symbol.st_value, symbol.st_size, name.substr(0, name.find('\0')));
  }
  table.sort();
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

void FunctionTable::add(std::uint64_t address, std::uint64_t size, std::string_view name) {
  if (name.empty() || names_.size() + name.size() >= kMostNames) return;
  functions_.push_back({address, size, static_cast<std::uint32_t>(names_.size())});
  names_ += name;
  names_ += '\0';
}

void FunctionTable::sort() { std::ranges::stable_sort(functions_, {}, &Function::address); }

std::string_view FunctionTable::find(std::uint64_t address, bool sizes_known) const {
  auto next = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  // Names of one address, and functions that hold others, stand before: look back a few.
  for (int tries = 0; tries < 8 && next != functions_.begin(); ++tries) {
    --next;
    if (!sizes_known || address - next->address < std::max<std::uint64_t>(next->size, 1)) return &names_[next->name];
  }
  return {};
}

std::string_view ElfModule::label() const {
  const std::size_t slash = path.rfind('/');
  return std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
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
  for (const auto wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
    Elf_Scn* section = nullptr;
    while (module.functions.empty() && (section = elf_nextscn(file.elf, section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == static_cast<GElf_Word>(wanted))
        read_functions(file.elf, section, header, module.functions);
    }
  }
  return module;
}

}  // namespace culprit::record::bpf
