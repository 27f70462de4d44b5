#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/text.h"
#include "record/collector/kernel_text.h"
#include "record/collector/pid_namespace.h"
#include "record/doctor/checks.h"

namespace culprit::record {

namespace {

/// "r0 = 0; exit" as a raw tracepoint program: it needs what the real ones need, CAP_BPF and CAP_PERFMON.
int try_load_program() {
  const std::array<bpf_insn, 2> code = {
      {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
       {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}}};
  static constexpr char kLicense[] = "GPL";
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  attributes.insns = reinterpret_cast<std::uint64_t>(code.data());
  attributes.insn_cnt = code.size();
  attributes.license = reinterpret_cast<std::uint64_t>(&kLicense);
  const long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

int try_perf() {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  attributes.exclude_kernel = 1;
  const long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

std::uint64_t effective_capabilities() {
  const std::string status = read_text("/proc/self/status", 64 * 1024).value_or("");
  const std::size_t at = status.find("\nCapEff:");
  if (at == std::string::npos) return 0;
  std::string_view rest = std::string_view(status).substr(at + 8);
  const std::string_view word = take_word(rest);
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return value;
}

std::string own_path() {
  char text[4096];
  const ssize_t n = readlink("/proc/self/exe", text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "culprit";
}

/// The first of `names` that the dynamic loader can open. It stays: some of these libraries do not survive being
/// unloaded.
template <std::size_t n>
std::string openable(const std::array<const char*, n>& names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)) {
      dlclose(library);
      return name;
    }
  return {};
}

std::string in_path(const std::string& name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    std::string full = fmt::format("{}/{}", rest.substr(0, end), name);
    struct stat status {};
    if (stat(full.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(full.c_str(), X_OK) == 0) return full;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return {};
}

}  // namespace

Attempts make_attempts() {
  Attempts a;
  a.uid = geteuid();
  a.capabilities = effective_capabilities();
  a.program = own_path();
  a.load_program = try_load_program();
  a.open_perf = try_perf();
  a.promptness = Prompt().promptness();
  a.first_pid_namespace = in_first_pid_namespace();
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) a.locked_memory = limit.rlim_cur;
  char folder[4096];
  if (getcwd(folder, sizeof folder) != nullptr) a.folder = folder;
  struct statvfs space_left {};
  if (statvfs(".", &space_left) == 0) a.folder_free = std::uint64_t{space_left.f_bavail} * space_left.f_frsize;
  const int fd = ::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0)
    ::close(fd);
  else if (errno == EOPNOTSUPP || errno == EISDIR)  // a file system without files that have no name
    a.write_folder = access(".", W_OK | X_OK) == 0 ? 0 : errno;
  else
    a.write_folder = errno;
  a.cupti = openable(std::array{"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so",
                                "/usr/local/cuda/lib64/libcupti.so", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"});
  a.cuda = openable(std::array{"libcuda.so.1"});
  a.nvml = openable(std::array{"libnvidia-ml.so.1"});
  a.nsys = in_path("nsys");
  a.ncu = in_path("ncu");
  return a;
}

}  // namespace culprit::record
