#include "record/interpreter/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/python_path.h"
#include "core/utf8.h"
#include "record/collector/elf_exports.h"
#include "record/collector/mappings.h"
#include "record/collector/target_memory.h"

namespace culprit::record::interpreter {

namespace {

constexpr std::size_t kMostCharacters = 200;
constexpr std::uint64_t kLongest = std::uint64_t{1} << 20;  // of names and paths
constexpr std::size_t kMostCode = std::size_t{1} << 14;
constexpr std::size_t kMostFiles = 8;  // of a process that look like an interpreter
constexpr std::size_t kHead = 136;     // of a code object, in which all stands that is read
constexpr std::string_view kUnreadable = "[python]";

/// A live object of that type. Memory that was given back keeps the type, but not the count of references.
bool is_live(std::uint64_t references, std::uint64_t type, std::uint64_t wanted) {
  return type == wanted && references != 0 && references <= std::numeric_limits<std::uint32_t>::max();
}

/// Neither is ever text of somebody: in memory that has become another object's, anything may stand.
bool may_be_function(std::string_view text) {
  return !text.empty() && text.find_first_of(" ?") == std::string_view::npos;
}
bool may_be_file(std::string_view text) {
  return text.starts_with('/') || text.starts_with('<') || text.ends_with(".py");
}

std::uint64_t word_at(const std::array<char, kHead>& head, std::uint32_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, head.data() + std::min<std::size_t>(offset, kHead - sizeof word), sizeof word);
  return word;
}

}  // namespace

Interpreter interpreter_of(std::int64_t pid) {
  constexpr std::array<std::string_view, 2> kSymbols = {"_PyRuntime", "PyCode_Type"};
  Interpreter found;
  std::set<std::string> files;
  for (const Mapping& mapping : executable_mappings(pid)) {
    const auto version = version_in(mapping.path);
    if (!version || files.size() >= kMostFiles || !files.insert(mapping.identity).second) continue;
    found.version = *version;
    found.kind = Kind::unknown;
    found.layout = layout_of(*version);
    if (found.layout == nullptr) continue;
    found.kind = Kind::unready;
    const TargetFile file = open_mapped(pid, mapping);
    if (!file) continue;
    const ElfExports elf = read_exports(file.path(), kSymbols);
    const auto base = load_base(mapping, elf);
    const auto runtime = elf.address_of(kSymbols[0]);
    const auto code_type = elf.address_of(kSymbols[1]);
    if (!base || !runtime || !code_type) continue;  // the program of a library
    std::uint64_t main = 0;
    if (!read_target(pid, *base + *runtime + found.layout->main_interpreter, main) || main == 0) continue;
    found.threads = main + found.layout->threads;
    found.code_type = *base + *code_type;
    found.kind = Kind::python;
    break;
  }
  return found;
}

std::string string_at(std::int64_t pid, const Layout& layout, std::uint64_t address) {
  struct Head {
    std::uint64_t count, type, length, hash;
    std::uint32_t state;
  } head{};
  static_assert(offsetof(Head, state) == 32);
  if (address == 0 || !read_target(pid, address, &head, offsetof(Head, state) + sizeof head.state)) return {};
  const std::uint32_t width = (head.state >> 2) & 7;
  const bool compact = ((head.state >> 5) & 1) != 0;
  const bool ascii = ((head.state >> 6) & 1) != 0;
  if (!compact || head.length > kLongest || (width != 1 && width != 2 && width != 4)) return {};
  const std::size_t characters = std::min<std::uint64_t>(head.length, kMostCharacters);
  std::vector<unsigned char> bytes(characters * width);
  // Of a long path the end says more than the begin.
  const std::uint64_t skipped = (head.length - characters) * width;
  if (!read_target(pid, address + (ascii ? layout.ascii_bytes : layout.compact_bytes) + skipped, bytes.data(),
                   bytes.size()))
    return {};
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    std::uint32_t point = 0;
    std::memcpy(&point, bytes.data() + i, width);
    if (point == ';') point = ':';
    append_utf8(text, point < ' ' || point == 0x7f ? U'?' : char32_t{point});
  }
  return text;
}

CodeNames::CodeNames(std::int64_t pid, const Layout& layout, std::uint64_t code_type)
    : pid_(pid), layout_(&layout), code_type_(code_type) {
  auto unreadable = std::make_shared<bpf::Code>();
  unreadable->function = kUnreadable;
  unreadable->kind = perfetto::CodeFrame::Kind::interpreted;
  unreadable_ = std::move(unreadable);
}

std::shared_ptr<const bpf::Code> CodeNames::find(std::uint64_t code) {
  std::array<char, kHead> head{};
  const bool read = read_target(pid_, code, head);
  if (!read || !is_live(word_at(head, 0), word_at(head, 8), code_type_)) {
    const auto known = known_.find(code);
    if (!read && known != known_.end()) return known->second.code;  // the process has ended
    return unreadable_;
  }
  if (known_.size() >= kMostCode) known_.clear();
  Known& known = known_[code];
  const std::uint64_t name = word_at(head, layout_->code_name);
  const std::uint64_t file = word_at(head, layout_->code_file);
  const auto line = static_cast<std::int32_t>(word_at(head, layout_->code_line) & 0xffffffff);
  if (known.code && known.name == name && known.file == file && known.line == line) return known.code;
  auto made = std::make_shared<bpf::Code>();
  made->kind = perfetto::CodeFrame::Kind::interpreted;
  const std::string function = string_at(pid_, *layout_, name);
  const std::string place = string_at(pid_, *layout_, file);
  made->function = !may_be_function(function) || !may_be_file(place)
                       ? std::string(kUnreadable)
                       : fmt::format("{} ({}:{})", function, short_python_path(place), line);
  known = {name, file, line, std::move(made)};
  return known.code;
}

}  // namespace culprit::record::interpreter
