#include "record/inject/inject.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/file.h"
#include "record/agent/agent_ring.h"
#include "record/collector/collector.h"
#include "record/collector/prompt.h"
#include "record/inject/borrowed.h"
#include "record/inject/process.h"
#include "record/inject/safe_point.h"
#include "record/inject/seccomp.h"

#if defined(__x86_64__)
#include <asm/unistd.h>
#endif

namespace culprit::record::inject {

namespace {

constexpr std::size_t kMostAgent = std::size_t{16} << 20;

Error broken(const std::string& path, const char* why) {
  return environment_error(fmt::format("the agent is not usable: {}", why), path,
                           "install or build culprit again (make build)");
}

}  // namespace

Shared::Shared(Shared&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Shared& Shared::operator=(Shared&& other) noexcept {
  std::swap(at_, other.at_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
Shared::~Shared() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

Result<Agent> read_agent(const std::string& path) {
  auto text = read_file(path, kMostAgent);
  if (!text) return text.error();
  constexpr std::array<std::string_view, 2> kNames = {"culprit_agent_parameters", "culprit_agent_begin"};
  const ElfExports elf = read_exports(path, kNames);
  const auto parameters = elf.address_of(kNames[0]);
  const auto begin = elf.address_of(kNames[1]);
  const auto place = parameters ? elf.offset_of(*parameters) : std::nullopt;
  if (!place || !begin || elf.build_id.empty()) return broken(path, "it lacks its doors");
  Agent agent;
  agent.bytes.assign(text->begin(), text->end());
  agent.parameters_at = *place;
  agent.begin_at = *begin;
  agent.segments = elf.segments;
  agent.build_id = elf.build_id;
  agent.build_id_at = elf.build_id_at;
  culprit_agent_parameters parameters_in_file{};
  if (agent.parameters_at + sizeof parameters_in_file > agent.bytes.size()) return broken(path, "it is cut");
  std::memcpy(&parameters_in_file, agent.bytes.data() + agent.parameters_at, sizeof parameters_in_file);
  if (parameters_in_file.magic != CULPRIT_AGENT_MAGIC) return broken(path, "it is of another version");
  return agent;
}

#if !defined(__x86_64__)

Result<Injected> inject(std::int64_t pid, const Agent& /*agent*/, std::string_view /*config*/) {
  return may_inject(pid).error();
}

#else

namespace {

constexpr std::uint64_t kRedZone = 128;  // below the stack pointer, which code may use without saying so
constexpr std::uint64_t kOwnStack = std::uint64_t{512} << 10;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kWordsAt = 2048;  // on the own stack, from its end: the path
constexpr Ns kTryFor = 2'000'000'000;
constexpr useconds_t kBetweenTries = 1000;
constexpr int kMostCalls = 4000;  // that dlopen() may make

Error trouble(std::int64_t pid, std::string what) {
  return environment_error(std::move(what), fmt::format("process {}", pid));
}

/// Whether the stack of a thread has room below its pointer.
bool has_room(const std::vector<Process::Range>& writable, std::uint64_t pointer, std::uint64_t bytes) {
  return std::ranges::any_of(writable, [&](const Process::Range& range) {
    return pointer > range.begin && pointer <= range.end && pointer - range.begin > bytes + kPage;
  });
}

/// The number of a line like "SigPnd:\t0000000000000000"; nothing when it is another one.
std::optional<std::uint64_t> mask_in(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(" \t", name.size()), line.size()));
  std::uint64_t value = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), value, 16).ec != std::errc()) return std::nullopt;
  return value;
}

bool has_pending_signals(std::int64_t pid, std::int64_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  std::uint64_t pending = 0;
  std::uint64_t blocked = 0;
  for (std::string line; std::getline(file, line);) {
    pending |= mask_in(line, "SigPnd:").value_or(0) | mask_in(line, "ShdPnd:").value_or(0);
    blocked |= mask_in(line, "SigBlk:").value_or(0);
  }
  return (pending & ~blocked) != 0;
}

/// A thread at a safe point, and how to make it call something.
class Caller {
 public:
  Caller(std::int64_t pid, std::int64_t tid, const Process& process, Borrowed thread)
      : process_(process),
        thread_(std::move(thread)),
        on_(going_on(thread_.state().registers, !has_pending_signals(pid, tid))) {}

  /// Lays the way back on the thread's own stack. Nothing is changed in the thread yet.
  bool prepare() {
    const std::uint64_t bytes = frame_bytes(thread_.state()) + kPage;
    const std::uint64_t pointer = thread_.state().registers.rsp;
    if (!has_room(process_.writable, pointer, bytes + kRedZone)) return false;
    return lay_way_back((pointer - kRedZone - bytes) & ~std::uint64_t{15});
  }

  /// What the process's own `number` returns; a failed one is a negative errno. Nothing when the process is gone.
  std::optional<long> call(long number, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0,
                           std::uint64_t e = 0, std::uint64_t f = 0) {
    user_regs_struct r = start(process_.system_call);
    r.rax = static_cast<unsigned long long>(number);
    r.rdi = a;
    r.rsi = b;
    r.rdx = c;
    r.r10 = d;
    r.r8 = e;
    r.r9 = f;
    if (!thread_.set(r) || !thread_.to_next_call() || !thread_.to_next_call()) return std::nullopt;
    const auto after = thread_.registers();
    if (!after) return std::nullopt;
    return static_cast<long>(after->rax);
  }

  /// Goes on with the calls on a stack of its own, whose last bytes are free for words().
  bool move_to(std::uint64_t stack) {
    stack_ = stack;
    const std::uint64_t bytes = frame_bytes(thread_.state()) + kPage + kWordsAt;
    return lay_way_back((stack + kOwnStack - bytes) & ~std::uint64_t{15});
  }
  std::optional<std::uint64_t> words(const std::string& text) {
    const std::uint64_t at = stack_ + kOwnStack - kWordsAt;
    if (!thread_.write(at, {reinterpret_cast<const std::uint8_t*>(text.c_str()), text.size() + 1})) return std::nullopt;
    return at;
  }
  /// Just below the way back, for the first call.
  std::optional<std::uint64_t> short_words(const std::string& text) {
    const std::uint64_t at = back_ - kRedZone - 64;
    if (!thread_.write(
            at, {reinterpret_cast<const std::uint8_t*>(text.c_str()), std::min<std::size_t>(text.size() + 1, 64)}))
      return std::nullopt;
    return at;
  }

  /// Calls a function and puts the thread back to where it was.
  bool call_and_return(std::uint64_t function, std::uint64_t a, std::uint64_t b) {
    user_regs_struct r = start(function);
    r.rdi = a;
    r.rsi = b;
    r.rax = 0;
    if (!thread_.set(r)) return false;
    for (int n = 0; n < kMostCalls; ++n) {
      if (!thread_.to_next_call()) return false;
      const auto now = thread_.registers();
      if (!now) return false;
      const bool is_back = now->orig_rax == __NR_rt_sigreturn && now->rip >= process_.sigreturn &&
                           now->rip <= process_.sigreturn + 16 && now->rsp == back_ + 8;
      if (is_back) return let_go();
    }
    return false;  // the frame brings it back when it is through
  }

  /// At the begin of a system call: the interrupted one takes its place.
  bool let_go() {
    user_regs_struct original = thread_.state().registers;
    const bool again = on_.rip != original.rip;
    original.orig_rax = again ? on_.rax : static_cast<unsigned long long>(-1);
    return thread_.let_go(original);
  }
  /// Before anything was called.
  bool leave() { return thread_.let_go(on_); }

 private:
  user_regs_struct start(std::uint64_t at) const {
    user_regs_struct r = thread_.state().registers;
    r.rip = at;
    r.rsp = back_;
    r.orig_rax = static_cast<unsigned long long>(-1);
    r.eflags &= ~std::uint64_t{0x400 | 0x100};  // direction, single steps
    return r;
  }

  /// `top`: 16 bytes aligned. A function that is entered with the stack pointer at back_ returns to rt_sigreturn.
  bool lay_way_back(std::uint64_t top) {
    back_ = top - 8;
    std::vector<std::uint8_t> bytes(8);
    std::memcpy(bytes.data(), &process_.sigreturn, 8);
    const std::vector<std::uint8_t> frame = signal_frame(thread_.state(), on_, top);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    return thread_.write(back_, bytes);
  }

  const Process& process_;
  Borrowed thread_;
  user_regs_struct on_;
  std::uint64_t back_ = 0;
  std::uint64_t stack_ = 0;
};

/// A descriptor of the process as one of ours, with no more than it may do with it itself; only of memory. -1: errno
/// says why. Its threads may have put another file in its place meanwhile, which a privileged recorder must not open
/// anew.
int memory_of(std::int64_t pid, long fd) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return -1;
  const auto here = static_cast<int>(syscall(SYS_pidfd_getfd, process, fd, 0));
  close(process);
  if (here >= 0 && fcntl(here, F_GET_SEALS) < 0) {
    close(here);
    errno = EINVAL;
    return -1;
  }
  return here;
}

Result<Shared> make_shared_memory(std::int64_t pid, long fd, std::string_view config, std::uint64_t stack) {
  const int here = memory_of(pid, fd);
  const auto fails = [&] { return trouble(pid, "cannot share memory with it: " + errno_text(errno)); };
  if (here < 0) return fails();
  void* at = MAP_FAILED;
  // What is sealed cannot be cut off under the recorder's feet.
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  struct stat now {};
  if (ftruncate(here, CULPRIT_AGENT_BYTES) == 0 && fcntl(here, F_ADD_SEALS, kSize) == 0 && fstat(here, &now) == 0) {
    if (now.st_size == CULPRIT_AGENT_BYTES)
      at = mmap(nullptr, CULPRIT_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, here, 0);
    else
      errno = EINVAL;
  }
  if (at == MAP_FAILED) {
    const Error error = fails();
    close(here);
    return error;
  }
  close(here);
  Shared shared(at, CULPRIT_AGENT_BYTES);
  auto* header = static_cast<culprit_agent_header*>(at);
  header->magic = CULPRIT_AGENT_MAGIC;
  header->version = CULPRIT_AGENT_VERSION;
  header->capacity = CULPRIT_AGENT_CAPACITY;
  header->config_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(config.size(), CULPRIT_AGENT_CONFIG_BYTES));
  header->stack = stack;
  header->stack_bytes = kOwnStack;
  header->alive = static_cast<std::uint64_t>(monotonic_now());
  std::memcpy(static_cast<char*>(at) + CULPRIT_AGENT_HEADER_BYTES, config.data(), header->config_bytes);
  return shared;
}

Status write_agent(std::int64_t pid, long fd, const Agent& agent, const culprit_agent_parameters& parameters) {
  std::vector<std::uint8_t> bytes = agent.bytes;
  std::memcpy(bytes.data() + agent.parameters_at, &parameters, sizeof parameters);
  const int here = memory_of(pid, fd);
  if (here < 0) return trouble(pid, "cannot hand it the agent: " + errno_text(errno));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(here, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(here);
  if (done < bytes.size()) return trouble(pid, "cannot hand it the agent: " + errno_text(errno));
  return {};
}

/// With the thread at a safe point.
Result<Injected> put_in(std::int64_t pid, Caller& caller, const Process& process, const Agent& agent,
                        std::string_view config) {
  const Error gone = trouble(pid, "it ended while the agent was put in");
  for (const std::uint64_t fd : process.leftovers)
    if (!caller.call(__NR_close, fd)) return gone;
  const auto name = caller.short_words("culprit-ring");
  const auto ring = name ? caller.call(__NR_memfd_create, *name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : std::nullopt;
  if (!ring) return gone;
  const auto stack = caller.call(__NR_mmap, 0, kOwnStack, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, static_cast<std::uint64_t>(-1), 0);
  if (!stack) return gone;
  const auto refuse = [&](std::string what) -> Error {
    if (*ring >= 0) static_cast<void>(caller.call(__NR_close, static_cast<std::uint64_t>(*ring)));
    if (*stack > 0) static_cast<void>(caller.call(__NR_munmap, static_cast<std::uint64_t>(*stack), kOwnStack));
    static_cast<void>(caller.leave());
    return trouble(pid, std::move(what));
  };
  if (*ring < 0) return refuse("it cannot make memory to share: " + errno_text(static_cast<int>(-*ring)));
  if (*stack < 0 && *stack > -4096) return refuse("it has no memory left: " + errno_text(static_cast<int>(-*stack)));
  auto shared = make_shared_memory(pid, *ring, config, static_cast<std::uint64_t>(*stack));
  if (!shared) return refuse(shared.error().what);
  Injected injected;
  bool called = false;
  if (process.resident_begin) {
    if (!caller.move_to(static_cast<std::uint64_t>(*stack))) return refuse("cannot write into it");
    called = caller.call_and_return(*process.resident_begin, static_cast<std::uint64_t>(*ring), 0);
  } else {
    const auto agent_name = caller.short_words("culprit-agent");
    const auto file =
        agent_name ? caller.call(__NR_memfd_create, *agent_name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : std::nullopt;
    if (!file) return gone;
    if (*file < 0) return refuse("it cannot make memory for the agent: " + errno_text(static_cast<int>(-*file)));
    const culprit_agent_parameters parameters = {
        CULPRIT_AGENT_MAGIC,    static_cast<std::int32_t>(*ring), static_cast<std::int32_t>(*file),
        process.pthread_create, process.pthread_detach,           process.dlsym};
    if (Status written = write_agent(pid, *file, agent, parameters); !written) {
      static_cast<void>(caller.call(__NR_close, static_cast<std::uint64_t>(*file)));
      return refuse(written.error().what);
    }
    // A name of its own each time: the loader knows by the name what it has loaded.
    const std::string path =
        fmt::format("/proc/self/fd/{}{}", std::string(static_cast<std::size_t>(monotonic_now() % 64), '/'), *file);
    const auto at = caller.move_to(static_cast<std::uint64_t>(*stack)) ? caller.words(path) : std::nullopt;
    if (!at) return refuse("cannot write into it");
    called = caller.call_and_return(process.dlopen, *at, process.dlopen_flags);
  }
  if (!called) return gone;
  auto* header = static_cast<culprit_agent_header*>(shared->data());
  __atomic_store_n(&header->returned, 1U, __ATOMIC_RELEASE);
  const std::uint32_t begun = __atomic_load_n(&header->begun, __ATOMIC_ACQUIRE);
  if (begun == 0)
    return trouble(pid, process.resident_begin ? "another recorder is attached to it"
                                               : "it could not load the agent (dlopen failed)");
  if (begun != 1) return trouble(pid, "it could not start a thread for the agent");
  injected.shared = std::move(*shared);
  return injected;
}

/// Whether the filters of a thread, and with it of those that it starts, let the agent do what it does.
Status may_call(std::int64_t pid, pid_t tid) {
  const SystemCalls allowed = system_calls_of(pid, tid);
  if (allowed == SystemCalls::all) return {};
  if (allowed == SystemCalls::few)
    return trouble(pid, "the system calls of a thread of it are restricted to reading and writing (seccomp)");
  const auto filters = filters_of(tid);
  if (!filters) return filters.error();
  const std::string call = forbidden_call(*filters);
  if (call.empty()) return {};
  return environment_error(fmt::format("its system calls are restricted (seccomp): {} is not allowed", call),
                           fmt::format("process {}", pid),
                           "run it without a seccomp profile (containers: --security-opt seccomp=unconfined)");
}

Result<Injected> try_threads(std::int64_t pid, const Process& process, const Agent& agent, std::string_view config) {
  const Ns begin = monotonic_now();
  std::optional<Error> why;
  std::set<std::int64_t> stuck;  // did not stop: they are still traced
  while (monotonic_now() - begin < kTryFor) {
    for (const std::int64_t tid : threads_to_try(pid)) {
      if (stuck.contains(tid)) continue;
      const Ns stopped = monotonic_now();
      auto thread = Borrowed::stop(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
      if (!thread) {
        why = thread.error();
        stuck.insert(tid);
        if (!why->remedy.empty()) return *why;  // not permitted: no other thread is
        continue;
      }
      if (Status may = may_call(pid, static_cast<pid_t>(tid)); !may) return may.error();
      const bool safe = is_safe(thread->state().registers, process.code);
      Caller caller(pid, tid, process, std::move(*thread));
      if (!safe || !caller.prepare()) {
        caller.leave();
        continue;
      }
      auto injected = put_in(pid, caller, process, agent, config);
      if (injected) injected->stopped = monotonic_now() - stopped;
      return injected;
    }
    usleep(kBetweenTries);
  }
  return why ? *why : trouble(pid, "no thread of it came to a point where it may be borrowed");
}

}  // namespace

Result<Injected> inject(std::int64_t pid, const Agent& agent, std::string_view config) {
  auto process = look_at(pid, agent);
  if (!process) return process.error();
  // Whatever happens to this thread, the kernel lets go of what it traces when it ends.
  std::optional<Result<Injected> > result;
  std::thread([&, is_prompt = Prompt::is_held()] {
    std::optional<Prompt> prompt;  // while a thread of the process stands still this one should not wait for a CPU
    if (is_prompt) prompt.emplace();
    result.emplace(try_threads(pid, *process, agent, config));
  }).join();
  return std::move(*result);
}

#endif

}  // namespace culprit::record::inject
