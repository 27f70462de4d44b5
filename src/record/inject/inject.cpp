#include "record/inject/inject.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <list>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/file.h"
#include "record/agent/agent_ring.h"
#include "record/collector/collector.h"
#include "record/collector/prompt.h"
#include "record/inject/borrowed.h"
#include "record/inject/caller.h"
#include "record/inject/others.h"
#include "record/inject/process.h"
#include "record/inject/safe_point.h"
#include "record/inject/seccomp.h"
#include "record/inject/status_file.h"

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

Result<Injected> inject(std::int64_t pid, const Agent& /*agent*/, std::string_view /*config*/,
                        const std::stop_token& /*given_up*/) {
  return may_inject(pid).error();
}

#else

namespace {

constexpr const char* kInUse = "another recorder is attached to it";
constexpr const char* kTooLate = "the recording ended before a thread of it could be borrowed";
constexpr Ns kTryFor = 2'000'000'000;
constexpr Ns kWaitFor = 5'000'000'000;    // for threads that get no CPU
constexpr Ns kNextAfter = 100'000'000;    // without its stop another thread is tried, too
constexpr Ns kEndWithin = 2'000'000'000;  // when it is given up
constexpr Ns kLeaveWithin = 20'000'000;   // threads that are looked at shortly
constexpr Ns kBetweenTries = 1'000'000;
constexpr int kMostRefusals = 3;
constexpr std::chrono::milliseconds kLeastPause{2};
constexpr std::chrono::milliseconds kMostPause{64};

Error trouble(std::int64_t pid, std::string what) {
  return environment_error(std::move(what), fmt::format("process {}", pid));
}

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

/// How long a borrowed thread is waited for. An agent that may have begun meanwhile sees that its recorder lives, and
/// other threads that were asked to stop go on as soon as they do: one of them may hold a lock that the borrowed one
/// waits for.
class Patience {
 public:
  Patience(std::stop_token given_up, std::list<Borrowed>& awaited)
      : given_up_(std::move(given_up)), awaited_(awaited) {}
  void keep_alive(culprit_agent_header* header) { header_ = header; }
  bool lasts() {
    const Ns now = monotonic_now();
    awaited_.remove_if([](Borrowed& thread) { return thread.has_come(); });
    if (header_ != nullptr) __atomic_store_n(&header_->alive, static_cast<std::uint64_t>(now), __ATOMIC_RELAXED);
    if (until_ == 0 && given_up_.stop_requested()) until_ = now + kEndWithin;
    return until_ == 0 || now < until_;
  }

 private:
  std::stop_token given_up_;
  std::list<Borrowed>& awaited_;
  culprit_agent_header* header_ = nullptr;
  Ns until_ = 0;
};

/// Why a borrowed thread did not do what it was asked for.
Error left_off(std::int64_t pid, pid_t tid) {
  return trouble(pid, has_ended(pid, tid) ? "it ended while the agent was put in"
                                          : "a thread of it got no CPU any more while the agent was put in");
}

/// An agent that is begun by a thread that is not back: it ends at once, and does not take the stack away from it.
void leave(culprit_agent_header* header) {
  __atomic_store_n(&header->stack, std::uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&header->stop, 1U, __ATOMIC_RELEASE);
}

/// What the process was made to have for the agent.
struct Made {
  long ring = -1;  ///< descriptors
  long agent = -1;
  long stack = -1;  ///< address
};

/// Closes a descriptor of the process, which may have put another file in its place. False when the process is gone.
bool close_memory(std::int64_t pid, Caller& caller, long fd, std::string_view name) {
  const auto number = static_cast<std::uint64_t>(fd);
  return fd < 0 || !is_memory_called(pid, number, name) || caller.call(__NR_close, number).has_value();
}

/// Gives it back and lets the thread go.
void undo(std::int64_t pid, Caller& caller, const Made& made) {
  if (!caller.move_back()) return;
  close_memory(pid, caller, made.ring, kRingName);
  close_memory(pid, caller, made.agent, kAgentName);
  if (made.stack > 0) static_cast<void>(caller.call(__NR_munmap, static_cast<std::uint64_t>(made.stack), kOwnStack));
  static_cast<void>(caller.let_go());
}

enum class Stacks : std::uint8_t { free, in_use, unknown };

/// Whether a thread is on one of the stacks that killed recorders left: it is stopped for a look, if it does so soon.
/// `awaited`: those that were asked to already.
Stacks use_by(std::int64_t pid, std::int64_t tid, const Process& process, std::list<Borrowed>& awaited) {
  auto thread = std::ranges::find_if(awaited, [&](const Borrowed& one) { return one.tid() == tid; });
  if (thread == awaited.end()) {
    auto seized = Borrowed::seize(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
    if (!seized && has_ended(pid, tid)) return Stacks::free;
    if (!seized) return tracer_of(pid, gettid()) != 0 ? Stacks::in_use : Stacks::unknown;
    thread = awaited.insert(awaited.end(), std::move(*seized));
  }
  const Borrowed::Stop stop = thread->stop(kLeaveWithin);
  if (stop == Borrowed::Stop::not_yet) return Stacks::unknown;
  Borrowed stopped = std::move(*thread);
  awaited.erase(thread);
  if (stop == Borrowed::Stop::failed) return has_ended(pid, tid) ? Stacks::free : Stacks::unknown;
  const std::uint64_t pointer = stopped.state().registers.rsp;
  Caller(pid, tid, process, std::move(stopped)).let_go();
  return std::ranges::any_of(process.traces.stacks,
                             [&](const Range& stack) { return pointer >= stack.begin && pointer <= stack.end; })
             ? Stacks::in_use
             : Stacks::free;
}

/// Of all threads but the one that is borrowed.
Stacks use_of_stacks(std::int64_t pid, std::int64_t but, const Process& process, std::list<Borrowed>& awaited) {
  const std::vector<std::int64_t> threads = threads_to_try(pid);
  if (threads.size() >= kMostThreadsToTry) return Stacks::unknown;  // not all are there
  for (const std::int64_t tid : threads)
    if (const Stacks use = tid == but ? Stacks::free : use_by(pid, tid, process, awaited); use != Stacks::free)
      return use;
  return Stacks::free;
}

enum class Cleared : std::uint8_t { done, in_use, gone };

/// What killed recorders left, unless a thread that was borrowed by them may go on with it.
Cleared clear_leftovers(std::int64_t pid, std::int64_t tid, Caller& caller, const Process& process,
                        std::list<Borrowed>& awaited) {
  const Traces& left = process.traces;
  if (!left.stacks.empty()) {
    const Stacks use = use_of_stacks(pid, tid, process, awaited);
    if (use == Stacks::unknown) return Cleared::done;  // it stays
    if (use == Stacks::in_use) return Cleared::in_use;
  }
  for (const std::uint64_t fd : left.descriptors)
    if (!close_memory(pid, caller, static_cast<long>(fd), kRingName) ||
        !close_memory(pid, caller, static_cast<long>(fd), kAgentName))
      return Cleared::gone;
  for (const Range& stack : left.stacks)
    if (!caller.call(__NR_munmap, stack.begin, stack.end - stack.begin)) return Cleared::gone;
  return Cleared::done;
}

/// With the thread at a safe point.
Result<Injected> put_in(std::int64_t pid, pid_t tid, Caller& caller, Patience& patience, const Process& process,
                        const Agent& agent, std::string_view config) {
  Made made;
  const auto refuse = [&](std::string what) -> Error {
    undo(pid, caller, made);
    return trouble(pid, std::move(what));
  };
  const auto name = caller.short_words(kRingName);
  const auto ring = name ? caller.call(__NR_memfd_create, *name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : std::nullopt;
  if (!ring) return left_off(pid, tid);
  if (*ring < 0) return refuse("it cannot make memory to share: " + errno_text(static_cast<int>(-*ring)));
  made.ring = *ring;
  // A private copy of the shared memory, by whose name it is known when the recorder is killed.
  const auto stack = caller.call(__NR_mmap, 0, kOwnStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                                 static_cast<std::uint64_t>(*ring), 0);
  if (!stack) return left_off(pid, tid);
  if (*stack < 0 && *stack > -4096) return refuse("it has no memory left: " + errno_text(static_cast<int>(-*stack)));
  made.stack = *stack;
  auto shared = make_shared_memory(pid, *ring, config, static_cast<std::uint64_t>(*stack));
  if (!shared) return refuse(shared.error().what);
  auto* header = static_cast<culprit_agent_header*>(shared->data());
  patience.keep_alive(header);
  bool called = false;
  if (process.resident_begin) {
    if (!caller.move_to(static_cast<std::uint64_t>(*stack))) return refuse("cannot write into it");
    called = caller.call_function(*process.resident_begin, static_cast<std::uint64_t>(*ring), 0);
  } else {
    const auto agent_name = caller.short_words(kAgentName);
    const auto file =
        agent_name ? caller.call(__NR_memfd_create, *agent_name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : std::nullopt;
    if (!file) return left_off(pid, tid);
    if (*file < 0) return refuse("it cannot make memory for the agent: " + errno_text(static_cast<int>(-*file)));
    made.agent = *file;
    const culprit_agent_parameters parameters = {
        CULPRIT_AGENT_MAGIC,    static_cast<std::int32_t>(*ring), static_cast<std::int32_t>(*file),
        process.pthread_create, process.pthread_detach,           process.dlsym};
    if (Status written = write_agent(pid, *file, agent, parameters); !written) return refuse(written.error().what);
    // A name of its own each time: the loader knows by the name what it has loaded.
    const std::string path =
        fmt::format("/proc/self/fd/{}{}", std::string(static_cast<std::size_t>(monotonic_now() % 64), '/'), *file);
    const auto at = caller.move_to(static_cast<std::uint64_t>(*stack)) ? caller.words(path) : std::nullopt;
    if (!at) return refuse("cannot write into it");
    called = caller.call_function(process.dlopen, *at, process.dlopen_flags);
  }
  const auto not_back = [&] {
    leave(header);
    return left_off(pid, tid);
  };
  if (!called) return not_back();
  const std::uint32_t begun = __atomic_load_n(&header->begun, __ATOMIC_ACQUIRE);
  if (begun == 0) return refuse(process.resident_begin ? kInUse : "it could not load the agent (dlopen failed)");
  if (begun != 1) return refuse("it could not start a thread for the agent");
  if (!caller.let_go()) return not_back();
  __atomic_store_n(&header->returned, 1U, __ATOMIC_RELEASE);
  Injected injected;
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

/// What came of it, and whether it is worth another try from the beginning: others were in the process.
struct Attempt {
  Result<Injected> result;
  bool again = false;
};

/// With a thread seized: whoever else wants the process sees that from now on, and goes away. Nothing when nobody else
/// is there; `process` has what others left meanwhile.
std::optional<Attempt> look_for_others(std::int64_t pid, Process& process) {
  if (const std::int64_t tracer = tracer_of(pid, gettid()); tracer != 0) return Attempt{traced_by(pid, tracer), true};
  Traces now = traces_in(pid);
  if (Status alone = has_no_agent(pid, now); !alone) return Attempt{alone.error()};
  if (now.libraries != process.traces.libraries) return Attempt{trouble(pid, kInUse), true};
  process.traces = std::move(now);
  return std::nullopt;
}

/// With a thread that stands still. Nothing when it may not be borrowed where it is.
std::optional<Attempt> try_thread(std::int64_t pid, Borrowed thread, const Process& process, const Agent& agent,
                                  std::string_view config, std::list<Borrowed>& awaited,
                                  const std::stop_token& given_up) {
  const Ns stopped = monotonic_now();
  const pid_t tid = thread.tid();
  const bool safe = is_safe_now(pid, thread.state().registers, process);
  Caller caller(pid, tid, process, std::move(thread));
  Patience patience(given_up, awaited);
  caller.while_waiting([&patience] { return patience.lasts(); });
  if (Status may = may_call(pid, tid); !may) {
    caller.let_go();
    return Attempt{may.error()};
  }
  if (!safe || !caller.prepare()) {
    caller.let_go();
    return std::nullopt;
  }
  const Cleared cleared = clear_leftovers(pid, tid, caller, process, awaited);
  if (cleared == Cleared::in_use) {
    caller.let_go();
    return Attempt{trouble(pid, "a thread of it may still do what a killed recorder wanted"), true};
  }
  if (cleared == Cleared::gone) return Attempt{left_off(pid, tid)};
  const std::uint64_t stack = start_of_stack(pid);
  auto injected = put_in(pid, tid, caller, patience, process, agent, config);
  if (injected) {
    injected->stopped = monotonic_now() - stopped;
    injected->stack = stack;
  }
  return Attempt{std::move(injected)};
}

/// Threads that are asked to stand still. What one does not do because it gets no CPU costs it nothing: it is awaited
/// while others are tried.
class Threads {
 public:
  Threads(std::int64_t pid, Process& process, const Agent& agent, std::string_view config,
          const std::stop_token& given_up)
      : pid_(pid), process_(process), agent_(agent), config_(config), given_up_(given_up) {}

  Attempt try_all() {
    const Ns begin = monotonic_now();
    for (;;) {
      const Ns now = monotonic_now();
      if (now - begin > (awaited_.empty() ? kTryFor : kWaitFor)) break;
      if (given_up_.stop_requested() && (awaited_.empty() || now - begin > kNextAfter)) break;
      if (now >= next_)
        if (auto attempt = seize_next(now)) return std::move(*attempt);
      if (auto attempt = look_at_awaited()) return std::move(*attempt);
      wait_a_moment(seized_);
    }
    if (!awaited_.empty()) return {trouble(pid_, "a thread of it gets no CPU: it does not stop")};
    if (given_up_.stop_requested() && !why_) return {trouble(pid_, kTooLate)};
    return {why_ ? *why_ : trouble(pid_, "no thread of it came to a point where it may be borrowed")};
  }

 private:
  bool is_awaited(std::int64_t tid) const {
    return std::ranges::any_of(awaited_, [&](const Borrowed& thread) { return thread.tid() == tid; });
  }

  std::optional<Attempt> seize_next(Ns now) {
    if (untried_.empty()) untried_ = threads_to_try(pid_);
    while (!untried_.empty()) {
      const std::int64_t tid = untried_.front();
      untried_.erase(untried_.begin());
      if (is_awaited(tid)) continue;
      auto thread = Borrowed::seize(static_cast<pid_t>(pid_), static_cast<pid_t>(tid));
      if (!thread) {
        why_ = thread.error();
        if (why_->remedy.empty() || has_ended(pid_, tid)) continue;
        if (const std::int64_t tracer = tracer_of(pid_, gettid()); tracer != 0)
          return Attempt{traced_by(pid_, tracer), true};
        if (++refusals_ > kMostRefusals) return Attempt{*why_};  // not permitted: no other thread is
        untried_.clear();                                        // who had it may just have gone
        break;
      }
      if (auto others = look_for_others(pid_, process_)) return others;
      awaited_.push_back(std::move(*thread));
      seized_ = now;
      next_ = now + kNextAfter;
      return std::nullopt;
    }
    next_ = now + kBetweenTries;
    return std::nullopt;
  }

  std::optional<Attempt> look_at_awaited() {
    for (auto found = awaited_.begin(); found != awaited_.end(); ++found) {
      const Borrowed::Stop stop = found->stop(0);
      if (stop == Borrowed::Stop::not_yet) continue;
      Borrowed thread = std::move(*found);
      awaited_.erase(found);
      next_ = untried_.empty() ? monotonic_now() + kBetweenTries : 0;
      if (stop != Borrowed::Stop::stopped) return std::nullopt;
      return try_thread(pid_, std::move(thread), process_, agent_, config_, awaited_, given_up_);
    }
    return std::nullopt;
  }

  std::int64_t pid_;
  Process& process_;
  const Agent& agent_;
  std::string_view config_;
  const std::stop_token& given_up_;
  std::vector<std::int64_t> untried_;
  std::list<Borrowed> awaited_;
  int refusals_ = 0;
  Ns seized_ = 0;  ///< the last one, when
  Ns next_ = 0;    ///< when another one is tried, too
  std::optional<Error> why_;
};

Attempt attempt_to_inject(std::int64_t pid, const Agent& agent, std::string_view config,
                          const std::stop_token& given_up) {
  if (const std::int64_t tracer = tracer_of(pid, 0); tracer != 0) return {traced_by(pid, tracer), true};
  auto process = look_at(pid, agent, given_up);
  if (!process) return {process.error()};
  // Whatever happens to this thread, the kernel lets go of what it traces when it ends.
  std::optional<Attempt> attempt;
  std::thread([&, is_prompt = Prompt::is_held()] {
    std::optional<Prompt> prompt;  // while a thread of the process stands still this one should not wait for a CPU
    if (is_prompt) prompt.emplace();
    attempt.emplace(Threads(pid, *process, agent, config, given_up).try_all());
  }).join();
  return std::move(*attempt);
}

}  // namespace

Result<Injected> inject(std::int64_t pid, const Agent& agent, std::string_view config,
                        const std::stop_token& given_up) {
  // Of several recorders that come at the same moment each sees the others; who comes again first has it.
  std::minstd_rand chance(static_cast<unsigned>(getpid()));
  const Ns begin = monotonic_now();
  for (auto most = kLeastPause;; most = std::min(2 * most, kMostPause)) {
    Attempt attempt = attempt_to_inject(pid, agent, config, given_up);
    if (!attempt.again || given_up.stop_requested() || monotonic_now() - begin > kTryFor)
      return std::move(attempt.result);
    const auto longest = std::chrono::microseconds(most).count();
    std::this_thread::sleep_for(std::chrono::microseconds(chance() % static_cast<unsigned>(longest)));
  }
}

#endif

}  // namespace culprit::record::inject
