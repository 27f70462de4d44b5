#include "record/bpf/symbols.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "record/bpf/elf_module.h"
#include "record/bpf/jit_map.h"
#include "record/collector/collector.h"
#include "record/collector/mappings.h"
#include "record/collector/target_file.h"

namespace culprit::record::bpf {

namespace {

using perfetto::CodeFrame;

constexpr Ns kLookAgain = 1'000'000'000;
constexpr Ns kShare = 200;  ///< looking takes at most this part of the time
// For names: a table is read as a whole, and who asks later asks for more of it at once.
constexpr Ns kLeastWait = 1'000'000'000;
constexpr Ns kMostWait = 10'000'000'000;
constexpr Ns kNamingShare = 400;  ///< of the time
constexpr std::size_t kMostWaiting = 4096;
constexpr std::size_t kMostCode = std::size_t{1} << 16;  ///< places that are kept of a process, a file and the kernel
constexpr std::string_view kKernel = "[kernel]";

/// Something that is looked at again and again.
struct Look {
  Ns at = 0;
  Ns took = 0;

  bool is_due(Ns now) const { return at == 0 || now - at > std::max(kLookAgain, kShare * took); }
  template <class Do>
  void look(Ns now, Do what) {
    const Ns before = monotonic_now();
    what();
    took = monotonic_now() - before;
    at = std::max<Ns>(now, 1);
  }
};

struct Module;

struct Process {
  std::vector<Mapping> mappings;  // by begin
  Look maps;
  JitMap jit;
  Look jit_map;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Code>> code;  // by address
  std::map<std::string, Module*> modules;                               // by identity
};

struct Module {
  ElfModule elf;
  std::unordered_map<std::uint64_t, std::shared_ptr<Code>> code;  // by address in the file
  std::vector<std::shared_ptr<Code>> waiting;
  TargetFile file;  // while something waits
};

/// Memory that a process filled with code itself.
bool may_be_jit(const Mapping& mapping) {
  return mapping.path.empty() || mapping.path.starts_with("[anon") || mapping.path.starts_with("//anon") ||
         mapping.path.starts_with("/memfd:") || mapping.path.starts_with("/dev/zero");
}

/// When it was written last, and its size.
std::string version_of(const TargetFile& file) {
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) return {};
  return fmt::format("{}.{} {}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size);
}

/// Names what waits in a module, and lets go of its file.
void name(Module& module) {
  auto waiting = std::exchange(module.waiting, {});
  const TargetFile file = std::exchange(module.file, {});
  std::ranges::sort(waiting, {}, [](const auto& code) { return code->address; });
  std::vector<std::uint64_t> addresses;
  addresses.reserve(waiting.size());
  for (const auto& code : waiting) addresses.push_back(code->address);
  const std::vector<std::string> symbols = function_symbols(file.path(), addresses);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (!symbols[i].empty()) waiting[i]->function = readable_symbol(symbols[i]);
    waiting[i]->named = true;
  }
  if (module.code.size() >= kMostCode) module.code.clear();
}

}  // namespace

bool is_named(const CodeStack& stack) {
  return std::ranges::all_of(stack, &Code::named, [](const auto& code) -> const Code& { return *code; });
}

CodeFrame frame_of(const Code& code) { return {code.function, code.module, code.build_id, code.address, code.kind}; }

std::string folded(const CodeStack& stack) {
  std::string text;
  for (const auto& code : stack) {
    if (!text.empty()) text += ';';
    if (!code->function.empty())
      text += code->function;
    else if (!code->module.empty())
      text += fmt::format("{}+{:#x}", code->module.substr(code->module.rfind('/') + 1), code->address);
    else
      text += "[unknown]";
  }
  return text;
}

struct Symbols::State {
  KernelNames kernel_names;
  std::map<std::string, Module> modules;  // by identity and version
  std::map<std::string, Module*> latest;  // by identity: that of the file that was opened last
  std::unordered_map<std::int64_t, Process> processes;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Code>> kernel_code;
  std::shared_ptr<const Code> nothing = std::make_shared<Code>();
  std::size_t waiting = 0;
  Ns waiting_since = 0;
  Ns took = 0;  // the last time

  const Mapping* find(const Process& process, std::uint64_t address) const {
    auto next = std::ranges::upper_bound(process.mappings, address, {}, &Mapping::begin);
    if (next == process.mappings.begin()) return nullptr;
    --next;
    return address < next->end ? &*next : nullptr;
  }

  /// A file that has the number of one that is gone is another one. Of a process that has ended nothing can be opened:
  /// then it is the one that was known by that number last.
  Module& module_of(std::int64_t pid, Process& process, const Mapping& mapping) {
    Module*& known = process.modules[mapping.identity];
    if (known != nullptr) return *known;
    TargetFile file = open_mapped(pid, mapping);
    if (const auto last = latest.find(mapping.identity); !file && last != latest.end()) return *(known = last->second);
    const auto [found, is_new] =
        modules.try_emplace(file ? mapping.identity + " " + version_of(file)
                                 : fmt::format("{} {} not opened", mapping.identity, mapping.path));
    known = &found->second;
    if (file) latest[mapping.identity] = known;
    if (is_new) {
      known->elf = read_elf_module(file.path(), mapping.path);
      known->file = std::move(file);
    }
    return *known;
  }

  std::shared_ptr<const Code> in_file(std::int64_t pid, Process& process, const Mapping& mapping, std::uint64_t offset,
                                      Ns now) {
    Module& module = module_of(pid, process, mapping);
    const std::uint64_t address = module.elf.address_of(offset);
    auto& code = module.code[address];
    if (code) return code;
    code = std::make_shared<Code>();
    code->module = module.elf.path;
    code->build_id = module.elf.build_id;
    code->address = address;
    if (!module.file) module.file = open_mapped(pid, mapping);
    if (!module.file) return code;
    code->named = false;
    module.waiting.push_back(code);
    if (waiting++ == 0) waiting_since = now;
    return code;
  }

  /// Nothing: ask again later.
  std::shared_ptr<const Code> find_code(std::int64_t pid, Process& process, std::uint64_t address, Ns now) {
    const Mapping* mapping = find(process, address);
    if (mapping == nullptr && process.maps.is_due(now)) {
      process.maps.look(now, [&] { process.mappings = executable_mappings(pid); });
      mapping = find(process, address);
    }
    if (mapping == nullptr) return nullptr;
    Code code;
    if (may_be_jit(*mapping)) {
      std::string_view name = process.jit.find(address);
      if (name.empty() && process.jit_map.is_due(now)) {
        process.jit_map.look(now, [&] { process.jit.read(pid); });
        name = process.jit.find(address);
      }
      if (name.empty()) return nullptr;
      code.function = readable_symbol(name);
      code.kind = CodeFrame::Kind::jit;
    } else if (mapping->path.front() != '/') {
      code.function = mapping->path;  // [vdso]
    } else {
      return in_file(pid, process, *mapping, address - mapping->begin + mapping->offset, now);
    }
    return std::make_shared<Code>(std::move(code));
  }

  std::shared_ptr<const Code> user(std::int64_t pid, Process& process, std::uint64_t address, Ns now) {
    if (const auto known = process.code.find(address); known != process.code.end()) return known->second;
    auto code = find_code(pid, process, address, now);
    if (!code) return nothing;
    if (process.code.size() >= kMostCode) process.code.clear();
    return process.code.emplace(address, std::move(code)).first->second;
  }

  std::shared_ptr<const Code> kernel(std::uint64_t address) {
    if (kernel_code.size() >= kMostCode) kernel_code.clear();
    auto& code = kernel_code[address];
    if (code) return code;
    // No address of the kernel stands in a file: where it is loaded is its secret.
    Code made;
    if (kernel_names) made.function = kernel_names(address);
    if (made.function.empty()) made.function = kKernel;
    made.module = kKernel;
    made.kind = CodeFrame::Kind::kernel;
    code = std::make_shared<Code>(std::move(made));
    return code;
  }
};

Symbols::Symbols(KernelNames kernel) : state_(std::make_unique<State>()) { state_->kernel_names = std::move(kernel); }
Symbols::~Symbols() = default;

void Symbols::append_user(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now, CodeStack& to) {
  Process& process = state_->processes[pid];
  for (std::size_t i = frames.size(); i-- > 0;) {
    // A return address may already belong to the next function.
    to.push_back(state_->user(pid, process, i == 0 || frames[i] == 0 ? frames[i] : frames[i] - 1, now));
  }
}

void Symbols::append_kernel(std::span<const std::uint64_t> frames, CodeStack& to) {
  for (std::size_t i = frames.size(); i-- > 0;) to.push_back(state_->kernel(i == 0 ? frames[i] : frames[i] - 1));
}

void Symbols::name_when_due(Ns now) {
  const State& state = *state_;
  if (state.waiting == 0) return;
  if (state.waiting >= kMostWaiting ||
      now - state.waiting_since >= std::clamp(kNamingShare * state.took, kLeastWait, kMostWait))
    name_all();
}

void Symbols::name_all() {
  State& state = *state_;
  if (std::exchange(state.waiting, 0) == 0) return;
  const Ns before = monotonic_now();
  for (auto& [identity, module] : state.modules)
    if (!module.waiting.empty()) name(module);
  state.took = monotonic_now() - before;
}

void Symbols::forget(std::int64_t pid) { state_->processes.erase(pid); }

}  // namespace culprit::record::bpf
