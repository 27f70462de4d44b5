#include "record/samples/unwind.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "record/collector/collector.h"
#include "record/collector/mappings.h"
#include "record/samples/frame_rules.h"

namespace culprit::record::samples {

namespace {

constexpr Ns kLookAgain = 1'000'000'000;
constexpr Ns kShare = 100;  ///< looking at the maps takes at most this part of the time
constexpr std::size_t kMostProcesses = 256;
constexpr std::size_t kMostFiles = 1024;
/// Bytes of a table that is read: the file is the target's, and libdw reads all of it.
constexpr GElf_Xword kMostTable = GElf_Xword{256} << 20;
constexpr GElf_Xword kMostSectionNames = GElf_Xword{16} << 20;

/// Neither its names of sections nor what tells how its stacks look are larger than compilers make them.
bool has_usual_tables(Elf* elf) {
  std::size_t names = 0;
  GElf_Shdr header;
  if (elf_getshdrstrndx(elf, &names) != 0) return false;
  if (names == SHN_UNDEF) return true;
  Elf_Scn* const of_names = elf_getscn(elf, names);
  if (of_names == nullptr || gelf_getshdr(of_names, &header) == nullptr || header.sh_size > kMostSectionNames)
    return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    if (gelf_getshdr(section, &header) == nullptr) return false;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && std::string_view(name).starts_with(".eh_frame") && header.sh_size > kMostTable) return false;
  }
  return true;
}

/// An ELF file that processes share, closed in the right order.
class File {
 public:
  explicit File(const TargetFile& target) : fd_(open(target.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ >= 0) elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
    if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF || !has_usual_tables(elf_)) return;
    std::size_t count = 0;
    if (elf_getphdrnum(elf_, &count) != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
        loads_.push_back(header);
    }
  }
  ~File() {
    if (elf_ != nullptr) elf_end(elf_);
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Where a process that has this mapping has the whole file; nothing when the mapping is none of its code.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> place(const Mapping& mapping) const {
    for (const GElf_Phdr& load : loads_) {
      const std::uint64_t skipped = load.p_offset % kPage;  // mapped, too
      if ((load.p_flags & PF_X) == 0 || mapping.offset < load.p_offset - skipped ||
          mapping.offset >= load.p_offset + load.p_filesz)
        continue;
      const std::uint64_t bias = mapping.begin - (load.p_vaddr + (mapping.offset - load.p_offset));
      const auto& last = loads_.back();
      const std::uint64_t begin = bias + loads_.front().p_vaddr / kPage * kPage;
      const std::uint64_t end = (bias + last.p_vaddr + last.p_memsz + kPage - 1) / kPage * kPage;
      if (begin < end && begin <= mapping.begin && mapping.end <= end) return std::pair(begin, end);
    }
    return std::nullopt;
  }
  /// Another handle of it, which who gets it ends; nullptr: it is no ELF file.
  [[nodiscard]] Elf* handle() const { return loads_.empty() ? nullptr : elf_begin(fd_, ELF_C_READ, elf_); }

 private:
  static constexpr std::uint64_t kPage = 4096;
  int fd_ = -1;
  Elf* elf_ = nullptr;
  std::vector<GElf_Phdr> loads_;
};

/// The sample that is followed.
struct Walk {
  const ThreadState* thread = nullptr;
  std::size_t most = 0;
  std::vector<std::uint64_t> chain;
};

int find_elf(Dwfl_Module* /*module*/, void** file, const char* /*name*/, Dwarf_Addr /*base*/, char** /*path*/,
             Elf** elf) {
  *elf = *file != nullptr ? static_cast<const File*>(*file)->handle() : nullptr;
  return -1;
}

int no_debug_info(Dwfl_Module* /*module*/, void** /*data*/, const char* /*name*/, Dwarf_Addr /*base*/,
                  const char* /*path*/, const char* /*link*/, GElf_Word /*crc*/, char** /*debug_path*/) {
  return -1;
}

constexpr Dwfl_Callbacks kFiles = {find_elf, no_debug_info, nullptr, nullptr};

pid_t no_threads(Dwfl* /*dwfl*/, void* /*walk*/, void** /*thread*/) { return 0; }

bool get_thread(Dwfl* /*dwfl*/, pid_t /*tid*/, void* walk, void** thread) {
  *thread = walk;
  return true;
}

bool read_stack(Dwfl* /*dwfl*/, Dwarf_Addr address, Dwarf_Word* word, void* walk) {
  const ThreadState& thread = *static_cast<const Walk*>(walk)->thread;
  constexpr std::size_t kStackPointer = 7;
  const std::uint64_t offset = address - thread.registers[kStackPointer];
  if (thread.stack.size() < sizeof *word || offset > thread.stack.size() - sizeof *word) return false;
  std::memcpy(word, thread.stack.data() + offset, sizeof *word);
  return true;
}

bool set_registers(Dwfl_Thread* thread, void* walk) {
  const ThreadState& state = *static_cast<const Walk*>(walk)->thread;
  const std::vector<Dwarf_Word> registers(state.registers.begin(), state.registers.end());
  return dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(registers.size()), registers.data());
}

constexpr Dwfl_Thread_Callbacks kThread = {no_threads, get_thread, read_stack, set_registers, nullptr, nullptr};

int take_frame(Dwfl_Frame* frame, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Dwarf_Addr pc = 0;
  if (!dwfl_frame_pc(frame, &pc, nullptr) || pc == 0) return DWARF_CB_ABORT;
  walk.chain.push_back(pc);
  return walk.chain.size() < walk.most ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// One process as libdw sees it.
struct Image {
  std::vector<Mapping> mappings;  // by begin
  Ns looked_at = 0;
  Ns look_took = 0;
  std::set<std::uint64_t> reported;  // begins of mappings
  Dwfl* dwfl = nullptr;
  bool attached = false;
  FrameRules rules;
  Walk walk;  // what libdw calls back with

  Image() : dwfl(dwfl_begin(&kFiles)) {}  // nullptr: no memory; all of libdw takes that
  ~Image() { dwfl_end(dwfl); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[nodiscard]] const Mapping* find(std::uint64_t address) const {
    auto next = std::ranges::upper_bound(mappings, address, {}, &Mapping::begin);
    if (next == mappings.begin()) return nullptr;
    --next;
    return address < next->end ? &*next : nullptr;
  }
};

}  // namespace

struct Unwinder::State {
  std::map<std::string, std::unique_ptr<File>> files;  // by identity; they outlive the images
  std::map<std::int64_t, std::unique_ptr<Image>> images;

  /// Tells libdw what lies at an address. False: it knows as much as it can.
  bool report(std::int64_t pid, Image& image, std::uint64_t address, Ns now) {
    const Mapping* mapping = image.find(address);
    const bool due = image.looked_at == 0 || now - image.looked_at > std::max(kLookAgain, kShare * image.look_took);
    if (mapping == nullptr && due) {
      const Ns before = monotonic_now();
      image.mappings = executable_mappings(pid);
      image.look_took = monotonic_now() - before;
      image.looked_at = std::max<Ns>(now, 1);
      mapping = image.find(address);
    }
    if (image.dwfl == nullptr || mapping == nullptr || !mapping->path.starts_with('/') ||
        !image.reported.insert(mapping->begin).second)
      return false;
    std::unique_ptr<File>& file = files[mapping->identity];
    if (!file) {
      const TargetFile target = open_mapped(pid, *mapping);
      if (target) file = std::make_unique<File>(target);
    }
    const auto place = file ? file->place(*mapping) : std::nullopt;
    if (!place) return false;
    dwfl_report_begin_add(image.dwfl);
    Dwfl_Module* module = dwfl_report_module(image.dwfl, mapping->path.c_str(), place->first, place->second);
    void** data = nullptr;
    if (module != nullptr && dwfl_module_info(module, &data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr))
      *data = file.get();
    dwfl_report_end(image.dwfl, nullptr, nullptr);
    return module != nullptr;
  }
};

Unwinder::Unwinder() : state_(std::make_unique<State>()) { elf_version(EV_CURRENT); }
Unwinder::~Unwinder() { state_->images.clear(); }

std::vector<std::uint64_t> Unwinder::chain(const ThreadState& thread, Ns now, std::size_t most) {
  if (thread.registers.empty()) return {};
  State& state = *state_;
  if (state.images.size() >= kMostProcesses && !state.images.contains(thread.pid)) state.images.clear();
  if (state.files.size() >= kMostFiles) {
    state.images.clear();
    state.files.clear();
  }
  std::unique_ptr<Image>& image = state.images[thread.pid];
  if (!image) image = std::make_unique<Image>();
  constexpr std::size_t kBase = 6;
  constexpr std::size_t kStack = 7;
  if (thread.registers.size() > kStack && image->dwfl != nullptr) {
    const auto find_module = [&](std::uint64_t address) {
      Dwfl_Module* module = dwfl_addrmodule(image->dwfl, address);
      if (module == nullptr && state.report(thread.pid, *image, address, now))
        module = dwfl_addrmodule(image->dwfl, address);
      return module;
    };
    auto followed = image->rules.follow({thread.registers.back(), thread.registers[kStack], thread.registers[kBase]},
                                        thread.stack, most, find_module);
    if (followed) return *followed;
    ++by_library_;
  }
  Walk& walk = image->walk;
  walk.thread = &thread;
  walk.most = most;
  std::vector<std::uint64_t> chain = {thread.registers.back()};
  // A file that libdw has not heard of ends a chain; then it hears of it, and begins anew.
  for (bool walked = false; chain.size() < most; walked = true) {
    const std::uint64_t last = chain.size() == 1 ? chain.back() : chain.back() - 1;
    if (!state.report(thread.pid, *image, last, now) && walked) break;
    if (!image->attached)
      image->attached = dwfl_attach_state(image->dwfl, nullptr, static_cast<pid_t>(thread.pid), &kThread, &walk);
    if (!image->attached) break;
    walk.chain.clear();
    dwfl_getthread_frames(image->dwfl, static_cast<pid_t>(thread.pid), take_frame, &walk);
    if (walk.chain.empty()) break;
    chain = walk.chain;
  }
  walk.thread = nullptr;
  return chain;
}

void Unwinder::forget(std::int64_t pid) { state_->images.erase(pid); }

}  // namespace culprit::record::samples
