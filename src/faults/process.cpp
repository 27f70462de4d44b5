#include "faults/process.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "faults/files.h"

namespace culprit::faults {

std::optional<ProcessFacts> process_facts(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const std::string folder = fmt::format("/proc/{}", pid);
  const auto stat = read_beginning(folder + "/stat");
  const auto status = read_beginning(folder + "/status");
  if (!stat || !status) return std::nullopt;
  // The command's name stands in parentheses and may hold anything, also parentheses and blanks.
  const std::size_t close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split_words(std::string_view(*stat).substr(close + 1));
  constexpr std::size_t kState = 0;
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kFlags = 6;
  constexpr std::size_t kStart = 19;
  constexpr std::int64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  if (fields.size() <= kStart) return std::nullopt;
  const auto parent = parse_number<std::int64_t>(fields[kParent]);
  const auto flags = parse_number<std::int64_t>(fields[kFlags]);
  const auto start = parse_number<std::int64_t>(fields[kStart]);
  if (!parent || !flags || !start) return std::nullopt;
  ProcessFacts facts;
  facts.id = {pid, static_cast<std::uint64_t>(*start)};
  facts.parent = static_cast<pid_t>(*parent);
  facts.state = fields[kState].front();
  facts.kernel_thread = (*flags & kKernelThread) != 0;
  for (const std::string_view line : split_lines(*status)) {
    const auto words = split_words(line);
    if (words.size() >= 3 && words[0] == "Uid:")
      facts.user = static_cast<uid_t>(parse_number<std::int64_t>(words[2]).value_or(-1));
  }
  return facts;
}

std::optional<ProcessHandle> ProcessHandle::open(ProcessId id) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0));
  if (fd < 0) return std::nullopt;
  ProcessHandle handle(id, fd);
  // Checked after opening: the descriptor is of whatever has the number now.
  const auto facts = process_facts(id.pid);
  if (!facts || facts->id != id || handle.ended()) return std::nullopt;
  return handle;
}

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept : id_(other.id_), fd_(std::exchange(other.fd_, -1)) {}

ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(fd_, other.fd_);
  return *this;
}

ProcessHandle::~ProcessHandle() {
  if (fd_ >= 0) close(fd_);
}

bool ProcessHandle::ended() const {
  pollfd entry{fd_, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

bool ProcessHandle::signal(int number) const { return syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0) == 0; }

namespace {

/// The process of which `pid` is a thread.
std::optional<std::int64_t> process_of(pid_t pid) {
  const auto status = read_beginning(fmt::format("/proc/{}/status", pid));
  return status ? number_after(*status, "Tgid:") : std::nullopt;
}

}  // namespace

Result<ProcessHandle> open_target(pid_t pid, bool any_user) {
  const std::string where = fmt::format("process {}", pid);
  if (pid <= 0) return usage_error(fmt::format("{} is no process number", pid));
  if (pid == 1) return usage_error("process 1 is never disturbed", "name the process that does the work");
  if (pid == getpid()) return usage_error("culprit does not disturb itself");
  const auto facts = process_facts(pid);
  if (!facts || facts->state == 'Z' || facts->state == 'X')
    return environment_error("there is no such process", where, "see 'ps -e' for those that exist");
  if (facts->kernel_thread) return usage_error(fmt::format("{} is a kernel thread", where));
  if (const auto process = process_of(pid); process && *process != pid)
    return usage_error(fmt::format("{} is a thread of process {}", pid, *process), "give the number of the process");
  for (pid_t above = getppid(); above > 1;) {
    if (above == pid)
      return usage_error(fmt::format("{} started this program, which would be disturbed with it", where),
                         "name the process that does the work");
    const auto next = process_facts(above);
    if (!next) break;
    above = next->parent;
  }
  if (facts->user != geteuid() && !(any_user && geteuid() == 0))
    return environment_error(fmt::format("belongs to user {}, not to user {}", facts->user, geteuid()), where,
                             "run as its user, or as root with --any-user");
  auto handle = ProcessHandle::open(facts->id);
  if (!handle) return environment_error("ended just now", where);
  return std::move(*handle);
}

std::vector<ProcessId> process_tree(ProcessId root) {
  std::multimap<pid_t, ProcessId> children;
  std::vector<ProcessId> found;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): a handle of its own
    const auto pid = parse_number<std::int64_t>(entry->d_name);
    if (!pid) continue;
    const auto facts = process_facts(static_cast<pid_t>(*pid));
    if (!facts || facts->state == 'Z' || facts->state == 'X') continue;
    if (facts->id == root) found.push_back(root);
    children.emplace(facts->parent, facts->id);
  }
  closedir(folder);
  if (found.empty()) return found;
  std::set<pid_t> seen = {root.pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i].pid);
    for (auto child = begin; child != end; ++child)
      if (seen.insert(child->second.pid).second) found.push_back(child->second);
  }
  std::ranges::sort(found, {}, &ProcessId::pid);
  return found;
}

std::vector<int> allowed_cpus(pid_t pid) {
  std::vector<int> cpus;
  for (int most = 1024; most <= 65536; most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(most));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    CPU_ZERO_S(size, set);
    const int result = sched_getaffinity(pid, size, set);
    const int error = errno;
    if (result == 0)
      for (int cpu = 0; cpu < most; ++cpu)
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (result == 0 || error != EINVAL) break;
  }
  return cpus;
}

}  // namespace culprit::faults
