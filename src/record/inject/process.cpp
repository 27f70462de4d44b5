#include "record/inject/process.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "core/file.h"
#include "record/collector/elf_exports.h"
#include "record/collector/target_memory.h"
#include "record/inject/safe_point.h"

namespace culprit::record::inject {

namespace {

constexpr std::array<std::string_view, 6> kWanted = {"dlopen",         "__libc_dlopen_mode", "dlsym",
                                                     "pthread_create", "pthread_detach",     "gnu_get_libc_version"};
constexpr std::array<std::uint8_t, 3> kSystemCall = {0x0f, 0x05, 0xc3};
constexpr std::array<std::uint8_t, 9> kSigreturn = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
constexpr std::string_view kStrict = "1";  // of the modes of seccomp
constexpr std::uint64_t kNow = 2;
constexpr std::uint64_t kByLibc = 0x80000000;
#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#else
constexpr int kMachine = -1;
#endif

Error refusal(std::int64_t pid, std::string what, std::string remedy = {}) {
  return environment_error(std::move(what), fmt::format("process {}", pid), std::move(remedy));
}

/// Lines of a file like /proc/PID/status, by name.
std::map<std::string, std::string> status_of(const std::string& path) {
  std::map<std::string, std::string> status;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    status[line.substr(0, colon)] = begin == std::string::npos ? "" : line.substr(begin);
  }
  return status;
}

bool several(const std::string& ids) {
  // "real effective saved file": a program with another's privileges.
  const std::size_t first = ids.find('\t');
  const std::size_t second = first == std::string::npos ? first : ids.find('\t', first + 1);
  return second != std::string::npos && ids.substr(0, first) != ids.substr(first + 1, second - first - 1);
}

/// Where threads have their stacks.
void find_writable_memory(std::int64_t pid, Process& process) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    Range range;
    const char* end = line.data() + line.size();
    const auto begun = std::from_chars(line.data(), end, range.begin, 16);
    if (begun.ec != std::errc() || begun.ptr == end) continue;
    const auto ended = std::from_chars(begun.ptr + 1, end, range.end, 16);
    if (ended.ec != std::errc() || end - ended.ptr <= 4 || ended.ptr[2] != 'w') continue;
    process.writable.push_back(range);
  }
}

/// Where the names of libraries stand that come before the C library.
std::string preloaded(std::int64_t pid) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::string text;
  if (const auto read = read_file(fmt::format("/proc/{}/environ", pid), kMost)) text += *read;
  if (const TargetFile file = open_target_file(fmt::format("/proc/{}/root", pid), "/etc/ld.so.preload"))
    if (const auto read = read_file(file.path(), kMost)) text += *read;
  return text;
}

void find_allocators(std::int64_t pid, Process& process) {
  constexpr std::array<std::string_view, 1> kMalloc = {"malloc"};
  std::error_code code;
  const std::string program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), code).string();
  const std::string first = preloaded(pid);
  std::map<std::string, bool> known;
  for (const Mapping& mapping : process.code) {
    const std::string name = mapping.path.substr(mapping.path.rfind('/') + 1);
    const bool is_program = mapping.path == program;
    if (!mapping.path.starts_with('/') || is_guarded(mapping)) continue;
    const auto [found, fresh] = known.try_emplace(mapping.path, false);
    if (fresh) {
      found->second = name.find("malloc") != std::string::npos;
      if (!found->second && (is_program || first.find(name) != std::string::npos))
        if (const TargetFile file = open_mapped(pid, mapping))
          found->second = read_exports(file.path(), kMalloc).address_of(kMalloc[0]).has_value();
    }
    if (!found->second) continue;
    if (is_program)
      process.has_own_allocator = true;
    else
      process.allocators.push_back({mapping.begin, mapping.end});
  }
}

bool holds(std::int64_t pid, std::uint64_t at, const std::string& bytes) {
  std::string found(bytes.size(), '\0');
  return read_target(pid, at, found.data(), found.size()) && found == bytes;
}

}  // namespace

SystemCalls system_calls_of(std::int64_t pid, std::int64_t tid) {
  const auto status = status_of(fmt::format("/proc/{}/task/{}/status", pid, tid));
  const auto mode = status.find("Seccomp");
  if (mode == status.end() || mode->second == "0") return SystemCalls::all;
  return mode->second == kStrict ? SystemCalls::few : SystemCalls::filtered;
}

namespace {

/// What the kernel says of it, and who has it already.
Status is_permitted(std::int64_t pid, const Traces& traces, const std::stop_token& given_up) {
  // One that is stopped and continued again and again (by a supervisor, by `culprit inject pause`) runs soon.
  constexpr int kLooks = 50;
  constexpr std::chrono::milliseconds kBetween{20};
  std::map<std::string, std::string> status;
  for (int look = 0; look == 0 || (look < kLooks && !given_up.stop_requested()); ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    status = status_of(fmt::format("/proc/{}/status", pid));
    const auto state = status.find("State");
    if (state == status.end() || !state->second.starts_with('T')) break;
  }
  const auto value = [&](const char* key) {
    const auto found = status.find(key);
    return found == status.end() ? std::string() : found->second;
  };
  if (status.empty()) return refusal(pid, "it has ended");
  if (kMachine < 0) return refusal(pid, "on this architecture nothing can be put into running processes yet");
  if (value("Seccomp") == kStrict)
    return refusal(pid, "its system calls are restricted to reading and writing (seccomp)");
  if (several(value("Uid")) || several(value("Gid")))
    return refusal(pid, "it runs with another user's privileges than its own (setuid)");
  if (value("State").starts_with('T')) return refusal(pid, "it is stopped", "let it go on: kill -CONT");
  if (value("State").starts_with('Z') || value("State").starts_with('X')) return refusal(pid, "it has ended");
  const ElfExports program = read_exports(fmt::format("/proc/{}/exe", pid), {});
  if (program.machine == 0)
    return refusal(pid, "it is a kernel thread, or its program cannot be read", "run as root or as its user");
  if (program.machine != kMachine) return refusal(pid, "its program is of another architecture");
  return has_no_agent(pid, traces);
}

}  // namespace

Error traced_by(std::int64_t pid, std::int64_t tracer) {
  return refusal(pid, fmt::format("it is traced by process {}", tracer), "end that debugger or tracer");
}

Status may_inject(std::int64_t pid) {
  if (const std::int64_t tracer = tracer_of(pid, 0); tracer != 0) return traced_by(pid, tracer);
  if (const auto process = look_at(pid, {}); !process) return process.error();
  return {};
}

Result<Process> look_at(std::int64_t pid, const Agent& agent, const std::stop_token& given_up) {
  Process process;
  process.traces = traces_in(pid);
  if (Status may = is_permitted(pid, process.traces, given_up); !may) return may.error();
  process.code = executable_mappings(pid);
  find_writable_memory(pid, process);
  find_allocators(pid, process);
  bool has_libc = false;
  bool has_musl = false;
  for (const Mapping& mapping : process.code) {
    const std::string_view name = std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1);
    if (name.starts_with("ld-musl")) has_musl = true;
    const bool is_agent = mapping.path.starts_with("/memfd:" + kAgentName);
    const bool wanted = name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("libpthread") ||
                        name.starts_with("libdl");
    if (is_agent) {
      // Of which build it is stands in its own memory; one of another is left alone.
      ElfExports own;
      own.segments = agent.segments;
      if (const auto base = load_base(mapping, own);
          !agent.build_id.empty() && base && holds(pid, *base + agent.build_id_at, agent.build_id))
        process.resident_begin = *base + agent.begin_at;
      continue;
    }
    if (!wanted) continue;
    const TargetFile file = open_mapped(pid, mapping);
    if (!file) continue;
    const ElfExports elf = read_exports(file.path(), kWanted);
    const auto base = load_base(mapping, elf);
    if (!base) continue;
    const auto take = [&](const char* symbol, std::uint64_t& to) {
      if (const auto at = elf.address_of(symbol); at && to == 0) to = *base + *at;
    };
    take("dlsym", process.dlsym);
    take("pthread_create", process.pthread_create);
    take("pthread_detach", process.pthread_detach);
    if (elf.address_of("dlopen")) {
      take("dlopen", process.dlopen);
      process.dlopen_flags = kNow;
    } else if (process.dlopen == 0 && elf.address_of("__libc_dlopen_mode")) {
      take("__libc_dlopen_mode", process.dlopen);
      process.dlopen_flags = kNow | kByLibc;
    }
    if (!elf.address_of("gnu_get_libc_version")) {
      has_musl = has_musl || name == "libc.so";  // Debian's; its loader is the same file
      continue;
    }
    has_libc = true;
    if (const auto at = find_code(file.path(), elf, kSystemCall)) process.system_call = *base + *at;
    if (const auto at = find_code(file.path(), elf, kSigreturn)) process.sigreturn = *base + *at;
  }
  if (has_musl) return refusal(pid, "its C library is musl; the agent needs glibc");
  if (!has_libc)
    return refusal(pid, "it has no glibc of its own: a static program, or its files cannot be read", "run as root");
  if (process.dlopen == 0 || process.dlsym == 0 || process.pthread_create == 0 || process.pthread_detach == 0 ||
      process.system_call == 0 || process.sigreturn == 0)
    return refusal(pid, "its C library lacks what the agent needs (dlopen, threads)");
  return process;
}

}  // namespace culprit::record::inject
