#include "record/bpf/symbols.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/collector/target_file.h"

namespace culprit::record::bpf {

namespace {

constexpr Ns kLookAgain = 1'000'000'000;
constexpr std::size_t kLongestName = 160;

struct Function {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint32_t name = 0;  // offset in Module::names
};

struct Segment {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;
};

struct Module {
  std::string label;
  std::vector<Segment> segments;
  std::vector<Function> functions;  // by address
  std::vector<char> names;          // ends with a zero
};

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::string path;
  std::string identity;  // device and inode
};

struct Process {
  std::vector<Mapping> mappings;  // by begin
  Ns read_at = 0;
};

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
void read_functions(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, Module& module) {
  Elf_Data* data = elf_getdata(section, nullptr);
  Elf_Scn* text_section = elf_getscn(elf, header.sh_link);
  Elf_Data* text = text_section != nullptr ? elf_getdata(text_section, nullptr) : nullptr;
  if (data == nullptr || text == nullptr || text->d_buf == nullptr || header.sh_entsize == 0) return;
  const char* names = static_cast<const char*>(text->d_buf);
  module.names.assign(names, names + text->d_size);
  module.names.push_back('\0');
  const auto count = static_cast<int>(std::min<std::uint64_t>(header.sh_size / header.sh_entsize, 1U << 24));
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr) break;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    if (symbol.st_name >= module.names.size()) continue;
    module.functions.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
  }
  std::ranges::stable_sort(module.functions, {}, &Function::address);
}

Module read_module(const std::string& path, std::string label) {
  Module module;
  module.label = std::move(label);
  const ElfFile file(path);
  if (file.elf == nullptr || elf_kind(file.elf) != ELF_K_ELF) return module;
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
        read_functions(file.elf, section, header, module);
    }
  }
  return module;
}

/// A name for people: demangled, without parameters, without the separator of folded stacks.
std::string readable(const char* symbol) {
  std::string name = symbol;
  int status = 0;
  if (char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status); text != nullptr) {
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
  if (name.size() > kLongestName) name.resize(kLongestName);
  return name;
}

std::string name_in(const Module& module, std::uint64_t file_offset) {
  std::uint64_t address = file_offset;
  for (const Segment& segment : module.segments)
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size)
      address = file_offset - segment.offset + segment.address;
  auto next = std::ranges::upper_bound(module.functions, address, {}, &Function::address);
  // Names of one address, and functions that hold others, stand before: look back a few.
  for (int tries = 0; tries < 8 && next != module.functions.begin(); ++tries) {
    --next;
    if (address - next->address < std::max<std::uint64_t>(next->size, 1)) return readable(&module.names[next->name]);
  }
  return fmt::format("{}+{:#x}", module.label, address);
}

std::vector<Mapping> read_mappings(std::int64_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream file(fmt::format("/proc/{}/maps", pid));
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string range;
    std::string mode;
    std::string offset;
    std::string device;
    std::string inode;
    Mapping mapping;
    if (!(words >> range >> mode >> offset >> device >> inode) || mode.find('x') == std::string::npos) continue;
    std::getline(words >> std::ws, mapping.path);
    const std::size_t dash = range.find('-');
    if (dash == std::string::npos) continue;
    mapping.begin = std::strtoull(range.c_str(), nullptr, 16);
    mapping.end = std::strtoull(range.c_str() + dash + 1, nullptr, 16);
    mapping.offset = std::strtoull(offset.c_str(), nullptr, 16);
    mapping.identity = device + " " + inode;
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

}  // namespace

struct Symbols::State {
  std::map<std::string, Module> modules;  // by identity
  std::unordered_map<std::int64_t, Process> processes;

  const Mapping* find(const Process& process, std::uint64_t address) const {
    auto next = std::ranges::upper_bound(process.mappings, address, {}, &Mapping::begin);
    if (next == process.mappings.begin()) return nullptr;
    --next;
    return address < next->end ? &*next : nullptr;
  }

  const Module& module(std::int64_t pid, const Mapping& mapping) {
    if (const auto found = modules.find(mapping.identity); found != modules.end()) return found->second;
    const std::size_t slash = mapping.path.rfind('/');
    std::string label = slash == std::string::npos ? mapping.path : mapping.path.substr(slash + 1);
    // The file as the process sees it, which may live in a container; of a process that has ended, the file of that
    // name here, when it is the same one.
    TargetFile file = open_target_file(fmt::format("/proc/{}/root", pid), mapping.path);
    if (!file) {
      file = open_target_file("/", mapping.path);
      if (file.identity() != mapping.identity) file = {};
    }
    return modules.emplace(mapping.identity, read_module(file.path(), std::move(label))).first->second;
  }

  std::string name(std::int64_t pid, std::uint64_t address, Ns now) {
    Process& process = processes[pid];
    const Mapping* mapping = find(process, address);
    if (mapping == nullptr && (process.read_at == 0 || now - process.read_at > kLookAgain)) {
      process.mappings = read_mappings(pid);
      process.read_at = std::max<Ns>(now, 1);
      mapping = find(process, address);
    }
    if (mapping == nullptr || mapping->path.empty()) return "[unknown]";
    if (mapping->path.front() != '/') return mapping->path;  // [vdso]
    return name_in(module(pid, *mapping), address - mapping->begin + mapping->offset);
  }
};

Symbols::Symbols() : state_(std::make_unique<State>()) { elf_version(EV_CURRENT); }
Symbols::~Symbols() = default;

std::string Symbols::folded(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now) {
  std::string text;
  for (std::size_t i = frames.size(); i-- > 0;) {
    // A return address may already belong to the next function.
    const std::uint64_t address = i == 0 || frames[i] == 0 ? frames[i] : frames[i] - 1;
    if (!text.empty()) text += ';';
    text += state_->name(pid, address, now);
  }
  return text;
}

void Symbols::forget(std::int64_t pid) { state_->processes.erase(pid); }

}  // namespace culprit::record::bpf
