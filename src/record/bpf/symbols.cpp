#include "record/bpf/symbols.h"

#include <fmt/format.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "record/bpf/elf_module.h"
#include "record/bpf/jit_map.h"
#include "record/bpf/kernel_symbols.h"
#include "record/collector/target_file.h"

namespace culprit::record::bpf {

namespace {

using perfetto::CodeFrame;

constexpr Ns kLookAgain = 1'000'000'000;
constexpr std::size_t kMostCode = std::size_t{1} << 16;  ///< addresses with a name that are kept of a process
constexpr std::string_view kKernel = "[kernel]";

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::string path;
  std::string identity;  // device and inode
};

struct Code {
  std::string function;
  std::string_view module;
  std::string_view build_id;
  std::uint64_t address = 0;
  CodeFrame::Kind kind = CodeFrame::Kind::native;
};

struct Process {
  std::vector<Mapping> mappings;  // by begin
  Ns read_at = 0;
  JitMap jit;
  Ns jit_read_at = 0;
  std::unordered_map<std::uint64_t, Code> code;  // by address
};

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

bool is_due(Ns& last, Ns now) {
  if (last != 0 && now - last <= kLookAgain) return false;
  last = std::max<Ns>(now, 1);
  return true;
}

/// Memory that a process filled with code itself.
bool may_be_jit(const Mapping& mapping) {
  return mapping.path.empty() || mapping.path.starts_with("[anon") || mapping.path.starts_with("//anon") ||
         mapping.path.starts_with("/memfd:") || mapping.path.starts_with("/dev/zero");
}

}  // namespace

struct Symbols::State {
  std::map<std::string, ElfModule> modules;  // by identity
  std::unordered_map<std::int64_t, Process> processes;
  KernelSymbols kernel;
  bool kernel_read = false;

  const Mapping* find(const Process& process, std::uint64_t address) const {
    auto next = std::ranges::upper_bound(process.mappings, address, {}, &Mapping::begin);
    if (next == process.mappings.begin()) return nullptr;
    --next;
    return address < next->end ? &*next : nullptr;
  }

  const ElfModule& module(std::int64_t pid, const Mapping& mapping) {
    if (const auto found = modules.find(mapping.identity); found != modules.end()) return found->second;
    // The file as the process sees it, which may live in a container; of a process that has ended, the file of that
    // name here, when it is the same one.
    TargetFile file = open_target_file(fmt::format("/proc/{}/root", pid), mapping.path);
    if (!file) {
      file = open_target_file("/", mapping.path);
      if (file.identity() != mapping.identity) file = {};
    }
    return modules.emplace(mapping.identity, read_elf_module(file.path(), mapping.path)).first->second;
  }

  /// False: ask again later.
  bool resolve(std::int64_t pid, Process& process, std::uint64_t address, Ns now, Code& code) {
    const Mapping* mapping = find(process, address);
    if (mapping == nullptr && is_due(process.read_at, now)) {
      process.mappings = read_mappings(pid);
      mapping = find(process, address);
    }
    if (mapping == nullptr) return false;
    if (may_be_jit(*mapping)) {
      std::string_view name = process.jit.find(address);
      if (name.empty() && is_due(process.jit_read_at, now)) {
        process.jit.read(pid);
        name = process.jit.find(address);
      }
      code.function = readable_symbol(name);
      code.kind = CodeFrame::Kind::jit;
      return !name.empty();
    }
    if (mapping->path.front() != '/') {
      code.function = mapping->path;  // [vdso]
      return true;
    }
    const ElfModule& elf = module(pid, *mapping);
    code.module = elf.path;
    code.build_id = elf.build_id;
    code.address = elf.address_of(address - mapping->begin + mapping->offset);
    if (const std::string_view name = elf.functions.find(code.address); !name.empty())
      code.function = readable_symbol(name);
    return true;
  }

  const Code& user(std::int64_t pid, std::uint64_t address, Ns now) {
    static const Code kNothing;
    Process& process = processes[pid];
    if (const auto known = process.code.find(address); known != process.code.end()) return known->second;
    Code code;
    if (!resolve(pid, process, address, now, code)) return kNothing;
    return process.code.emplace(address, std::move(code)).first->second;
  }
};

Symbols::Symbols() : state_(std::make_unique<State>()) { elf_version(EV_CURRENT); }
Symbols::~Symbols() = default;

CodeFrame Symbols::user(std::int64_t pid, std::uint64_t address, Ns now) {
  const Code& code = state_->user(pid, address, now);
  return {code.function, code.module, code.build_id, code.address, code.kind};
}

CodeFrame Symbols::kernel(std::uint64_t address) {
  if (!std::exchange(state_->kernel_read, true)) state_->kernel.read();
  // No address of the kernel stands in a file: where it is loaded is its secret.
  const std::string_view name = state_->kernel.find(address);
  return {name.empty() ? kKernel : name, kKernel, {}, 0, CodeFrame::Kind::kernel};
}

void Symbols::append_user(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now, std::vector<CodeFrame>& to) {
  if (auto& code = state_->processes[pid].code; code.size() >= kMostCode) code.clear();
  for (std::size_t i = frames.size(); i-- > 0;) {
    // A return address may already belong to the next function.
    to.push_back(user(pid, i == 0 || frames[i] == 0 ? frames[i] : frames[i] - 1, now));
  }
}

void Symbols::append_kernel(std::span<const std::uint64_t> frames, std::vector<CodeFrame>& to) {
  for (std::size_t i = frames.size(); i-- > 0;) to.push_back(kernel(i == 0 ? frames[i] : frames[i] - 1));
}

std::string Symbols::folded(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now) {
  std::vector<CodeFrame> code;
  append_user(pid, frames, now, code);
  std::string text;
  for (const CodeFrame& frame : code) {
    if (!text.empty()) text += ';';
    if (!frame.function.empty())
      text += frame.function;
    else if (!frame.module.empty())
      text += fmt::format("{}+{:#x}", frame.module.substr(frame.module.rfind('/') + 1), frame.address);
    else
      text += "[unknown]";
  }
  return text;
}

void Symbols::forget(std::int64_t pid) { state_->processes.erase(pid); }

}  // namespace culprit::record::bpf
