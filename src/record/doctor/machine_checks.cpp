#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "record/collector/cgroups.h"
#include "record/collector/kernel_text.h"
#include "record/doctor/checks.h"

namespace culprit::record {

namespace {

constexpr unsigned kCapSysPtrace = 19;
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;

bool has(const Attempts& a, unsigned capability) { return ((a.capabilities >> capability) & 1U) != 0; }
bool may_trace(const Attempts& a) { return has(a, kCapSysAdmin) || (has(a, kCapBpf) && has(a, kCapPerfmon)); }

/// "6.18.44-fc" -> 6, 18.
std::optional<std::pair<std::uint64_t, std::uint64_t>> version_of(std::string_view release) {
  const std::size_t dot = release.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_number<std::uint64_t>(release.substr(0, dot));
  std::size_t end = dot + 1;
  while (end < release.size() && release[end] >= '0' && release[end] <= '9') ++end;
  const auto minor = parse_number<std::uint64_t>(release.substr(dot + 1, end - dot - 1));
  if (!major || !minor) return std::nullopt;
  return std::pair{*major, *minor};
}

struct Collecting {
  std::vector<Check>& checks;
  std::string group;

  void ok(const char* key, std::string what, std::string found) const {
    checks.push_back({group, key, std::move(what), CheckState::ok, std::move(found), {}});
  }
  void limited(const char* key, std::string what, std::string found, std::string remedy) const {
    checks.push_back({group, key, std::move(what), CheckState::limited, std::move(found), std::move(remedy)});
  }
  void missing(const char* key, std::string what, std::string found, std::string remedy) const {
    checks.push_back({group, key, std::move(what), CheckState::missing, std::move(found), std::move(remedy)});
  }
};

void kernel_checks(const Collecting& add, const std::string& root) {
  const std::string release = read_word(root + "/proc/sys/kernel/osrelease");
  const auto version = version_of(release);
  constexpr std::pair<std::uint64_t, std::uint64_t> kNeeded = {5, 15};
  if (!version)
    add.limited("kernel.version", "Linux version", release.empty() ? "unknown" : release, "mount /proc");
  else if (*version < kNeeded)
    add.limited("kernel.version", "Linux version", release + ": scheduling by eBPF needs 5.15",
                "run Linux 5.15 or later; until then only totals per thread are recorded");
  else
    add.ok("kernel.version", "Linux version", release);

  const bool btf = read_text(root + "/sys/kernel/btf/vmlinux", 4).value_or("").size() == 4;
  if (btf)
    add.ok("kernel.btf", "types of the kernel (BTF)", "/sys/kernel/btf/vmlinux");
  else
    add.missing("kernel.btf", "types of the kernel (BTF)", "/sys/kernel/btf/vmlinux cannot be read",
                "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions build it");

  const std::string lockdown = read_word(root + "/sys/kernel/security/lockdown");
  if (lockdown.find("[confidentiality]") != std::string::npos)
    add.missing("kernel.lockdown", "kernel lockdown", "confidentiality: programs in the kernel may not read its memory",
                "boot with lockdown=integrity");
  else
    add.ok("kernel.lockdown", "kernel lockdown",
           lockdown.empty()                                    ? "cannot be asked: securityfs is not mounted"
           : lockdown.find("[integrity]") != std::string::npos ? "integrity, which lets Culprit's programs run"
                                                               : "none");

  const std::string schedstat = read_word(root + "/proc/self/schedstat");
  if (!schedstat.empty())
    add.ok("kernel.schedstat", "run and wait totals of threads (schedstat)", "/proc/PID/task/TID/schedstat");
  else
    add.missing("kernel.schedstat", "run and wait totals of threads (schedstat)", "/proc/self/schedstat is not there",
                "a kernel with CONFIG_SCHED_INFO");

  const auto pressure = read_text(root + "/proc/pressure/cpu", 4096);
  if (pressure && pressure->starts_with("some"))
    add.ok("kernel.pressure", "pressure stall times (PSI)", "/proc/pressure");
  else
    add.missing("kernel.pressure", "pressure stall times (PSI)", "/proc/pressure/cpu cannot be read",
                "boot with psi=1 (CONFIG_PSI=y)");

  bool v1 = false;
  bool v2 = false;
  const auto mountinfo = read_text(root + "/proc/self/mountinfo", std::size_t{4} << 20);
  for (const CgroupMount& mount : parse_cgroup_mounts(mountinfo.value_or(""), root)) (mount.v2 ? v2 : v1) = true;
  if (v1 || v2)
    add.ok("kernel.cgroups", "control groups",
           v1 && v2 ? "version 1, with 2 beside it"
           : v1     ? "version 1"
                    : "version 2");
  else
    add.missing("kernel.cgroups", "control groups", "no cgroup file system is mounted",
                "mount -t cgroup2 none /sys/fs/cgroup");
  add.ok("kernel.tracefs", "tracefs", "not needed");
}

void permission_checks(const Collecting& add, const std::string& root, const Attempts& a) {
  const std::string setcap = fmt::format("sudo setcap cap_bpf,cap_perfmon+ep {}", a.program);
  const std::string who = a.uid == 0 ? "root" : fmt::format("user {}", a.uid);
  if (may_trace(a))
    add.ok("permissions.capabilities", "privileges for eBPF", fmt::format("{}, with CAP_BPF and CAP_PERFMON", who));
  else
    add.missing("permissions.capabilities", "privileges for eBPF",
                fmt::format("{} without {}", who,
                            has(a, kCapBpf)       ? "CAP_PERFMON"
                            : has(a, kCapPerfmon) ? "CAP_BPF"
                                                  : "CAP_BPF and CAP_PERFMON"),
                setcap + ", or run as root");

  const std::string bpf_setting = read_word(root + "/proc/sys/kernel/unprivileged_bpf_disabled");
  if (a.load_program == 0)
    add.ok("permissions.ebpf", "loading a program into the kernel (tried)",
           bpf_setting.empty() ? "works"
                               : fmt::format("works; unprivileged_bpf_disabled={} does not matter then", bpf_setting));
  else
    add.missing("permissions.ebpf", "loading a program into the kernel (tried)",
                fmt::format("bpf(BPF_PROG_LOAD): {}{}", errno_text(a.load_program),
                            may_trace(a) ? ", despite the capabilities: a container's seccomp filter or an LSM" : ""),
                may_trace(a) ? "record on the host, or allow bpf(2) in the container's seccomp profile" : setcap);

  if (a.first_pid_namespace)
    add.ok("permissions.pid_namespace", "process numbers are the kernel's own", "the first pid namespace");
  else
    add.limited("permissions.pid_namespace", "process numbers are the kernel's own",
                "this is a container's pid namespace: scheduling by eBPF cannot tell its processes",
                "record on the host, or start the container with --pid=host");

  const std::string paranoid = read_word(root + "/proc/sys/kernel/perf_event_paranoid");
  if (a.open_perf == 0)
    add.ok("permissions.perf", "perf events of own processes (tried)",
           paranoid.empty() ? "works" : fmt::format("works, perf_event_paranoid={}", paranoid));
  else
    add.limited("permissions.perf", "perf events of own processes (tried)",
                fmt::format("perf_event_open: {}, perf_event_paranoid={}", errno_text(a.open_perf),
                            paranoid.empty() ? "?" : paranoid),
                "sudo sysctl kernel.perf_event_paranoid=2");

  if (a.promptness == Promptness::realtime)
    add.ok("permissions.realtime", "a CPU as soon as the recorder needs one (tried)", "real-time priority");
  else
    add.limited("permissions.realtime", "a CPU as soon as the recorder needs one (tried)",
                fmt::format("no real-time priority ({}): on a full machine it comes late, and records may be lost",
                            to_string(a.promptness)),
                fmt::format("run as root; or sudo setcap cap_bpf,cap_perfmon,cap_sys_nice+ep {}; or start the "
                            "container with --cap-add SYS_NICE",
                            a.program));

  const auto yama = read_number(root + "/proc/sys/kernel/yama/ptrace_scope");
  if (!yama)
    add.ok("permissions.ptrace", "attaching to running programs (ptrace)",
           "Yama is not there: own processes may be attached to");
  else if (*yama == 0 || (*yama < 3 && has(a, kCapSysPtrace)))
    add.ok("permissions.ptrace", "attaching to running programs (ptrace)", fmt::format("yama.ptrace_scope={}", *yama));
  else if (*yama < 3)
    add.limited("permissions.ptrace", "attaching to running programs (ptrace)",
                fmt::format("yama.ptrace_scope={}: {}", *yama,
                            *yama == 1 ? "only started programs" : "only with CAP_SYS_PTRACE"),
                "sudo sysctl kernel.yama.ptrace_scope=0, or start the program with culprit record -- COMMAND");
  else
    add.missing("permissions.ptrace", "attaching to running programs (ptrace)",
                "yama.ptrace_scope=3: nobody, until reboot",
                "reboot with a lower kernel.yama.ptrace_scope; steps marked with culprit_annotate.h or NVTX need none");

  constexpr std::uint64_t kEnough = std::uint64_t{64} << 20;
  const auto version = version_of(read_word(root + "/proc/sys/kernel/osrelease"));
  constexpr std::pair<std::uint64_t, std::uint64_t> kNoLimitSince = {5, 11};
  const std::string limit = a.locked_memory == std::numeric_limits<std::uint64_t>::max()
                                ? "unlimited"
                                : format_bytes(static_cast<double>(a.locked_memory));
  if (a.locked_memory >= kEnough || (version && *version >= kNoLimitSince))
    add.ok("permissions.locked_memory", "locked memory (RLIMIT_MEMLOCK)",
           a.locked_memory >= kEnough ? limit : limit + ", which does not limit eBPF since Linux 5.11");
  else
    add.limited("permissions.locked_memory", "locked memory (RLIMIT_MEMLOCK)", limit, "ulimit -l unlimited");
}

void machine_state_checks(const Collecting& add, const std::string& root) {
  const std::string clock = read_word(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  constexpr std::array kFast = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};
  if (clock.empty() || std::ranges::find(kFast, clock) != kFast.end())
    add.ok("machine.clock", "clock", clock.empty() ? "unknown" : clock);
  else
    add.limited("machine.clock", "clock", clock + ": reading the time is a slow call, which makes recording dearer",
                "boot with tsc=reliable where the CPU has a stable one");

  const std::string cpuinfo = read_text(root + "/proc/cpuinfo", std::size_t{4} << 20).value_or("");
  const bool virtual_machine = cpuinfo.find(" hypervisor") != std::string::npos;
  std::string product = read_word(root + "/sys/class/dmi/id/product_name");
  if (product.empty()) product = read_word(root + "/sys/hypervisor/type");
  std::string_view stat = {};
  const std::string stat_text = read_text(root + "/proc/stat", std::size_t{1} << 20).value_or("");
  stat = stat_text;
  std::string_view line = take_line(stat);
  double steal = 0;
  double all = 0;
  if (take_word(line) == "cpu")
    for (int i = 0; i < 8; ++i) {
      const auto ticks = parse_number<std::uint64_t>(take_word(line));
      if (!ticks) break;
      all += static_cast<double>(*ticks);
      if (i == 7) steal = static_cast<double>(*ticks);
    }
  const double share = all > 0 ? steal / all : 0;
  const std::string where = !virtual_machine  ? std::string("no hypervisor")
                            : product.empty() ? std::string("a virtual machine")
                                              : "a virtual machine (" + product + ")";
  constexpr double kMuchSteal = 0.01;
  if (share < kMuchSteal)
    add.ok("machine.steal", "CPUs of our own", fmt::format("{}; stolen since boot: {:.2f} %", where, share * 100));
  else
    add.limited(
        "machine.steal", "CPUs of our own",
        fmt::format("{}; stolen since boot: {:.1f} %: other machines disturb the measurements", where, share * 100),
        "use dedicated CPUs, or record more runs of each side");

  const bool pmu = !list_folder(root + "/sys/bus/event_source/devices/cpu").empty() ||
                   !list_folder(root + "/sys/bus/event_source/devices/cpu_core").empty();
  if (pmu)
    add.ok("machine.pmu", "hardware counters of the CPUs", "cpu PMU");
  else
    add.limited("machine.pmu", "hardware counters of the CPUs", "no cpu PMU",
                virtual_machine ? "ask for a virtual machine with a PMU; nothing that Culprit records needs it"
                                : "load the driver of the PMU; nothing that Culprit records needs it");

  std::string_view meminfo = {};
  const std::string meminfo_text = read_text(root + "/proc/meminfo", 64 * 1024).value_or("");
  meminfo = meminfo_text;
  std::optional<std::uint64_t> available;
  while (!meminfo.empty()) {
    std::string_view entry = take_line(meminfo);
    if (take_word(entry) == "MemAvailable:") available = parse_number<std::uint64_t>(take_word(entry));
  }
  constexpr std::uint64_t kEnoughKilobytes = 256 * 1024;
  const std::string amount = available ? format_bytes(static_cast<double>(*available) * 1024) : std::string("unknown");
  if (!available || *available >= kEnoughKilobytes)
    add.ok("machine.memory", "free memory", amount);
  else
    add.limited("machine.memory", "free memory", amount, "end something: a recorder takes about 100 MiB");
}

void gpu_checks(const Collecting& add, const std::string& root, const Attempts& a) {
  const bool driver = !read_word(root + "/proc/driver/nvidia/version").empty();
  const auto library = [&](const char* key, const char* what, const std::string& found, const char* name,
                           const char* remedy) {
    if (!found.empty())
      add.ok(key, what, found);
    else
      add.missing(key, what, fmt::format("{} cannot be opened{}", name, driver ? "" : "; no NVIDIA driver is loaded"),
                  remedy);
  };
  library("gpu.driver", "CUDA driver", a.cuda, "libcuda.so.1", "install the NVIDIA driver");
  library("gpu.nvml", "clocks, power and memory of GPUs (NVML)", a.nvml, "libnvidia-ml.so.1",
          "install the NVIDIA driver; in a container NVIDIA_DRIVER_CAPABILITIES=utility,compute");
  library("gpu.cupti", "kernels of GPUs (CUPTI)", a.cupti, "libcupti.so",
          "install the CUDA toolkit, or pip install nvidia-cuda-cupti-cu12, and add its folder to LD_LIBRARY_PATH");
}

void output_checks(const Collecting& add, const Attempts& a) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30;
  constexpr std::uint64_t kNothing = std::uint64_t{64} << 20;
  const std::string free = format_bytes(static_cast<double>(a.folder_free)) + " free in " + a.folder;
  if (a.write_folder != 0)
    add.missing("output.folder", "room for the recording", fmt::format("{}: {}", a.folder, errno_text(a.write_folder)),
                "go to another folder, or -o PATH");
  else if (a.folder_free < kNothing)
    add.missing("output.folder", "room for the recording", free, "make room, or -o PATH on another disk");
  else if (a.folder_free < kLittle)
    add.limited("output.folder", "room for the recording", free, "make room, or -o PATH on another disk");
  else
    add.ok("output.folder", "room for the recording", free);
}

void tool_checks(const Collecting& add, const Attempts& a) {
  const auto tool = [&](const char* key, const char* what, const std::string& path, const char* name) {
    if (!path.empty())
      add.ok(key, what, path);
    else
      add.limited(key, what, fmt::format("{} is not in PATH: such files cannot be read here", name),
                  fmt::format("install {}, or convert them where they were made", name));
  };
  tool("tools.nsys", "reading .nsys-rep", a.nsys, "nsys");
  tool("tools.ncu", "reading .ncu-rep", a.ncu, "ncu");
}

}  // namespace

std::string_view to_string(CheckState state) {
  switch (state) {
    case CheckState::ok:
      return "ok";
    case CheckState::limited:
      return "limited";
    case CheckState::missing:
      break;
  }
  return "missing";
}

std::vector<Check> machine_checks(const std::string& root, const Attempts& attempts) {
  std::vector<Check> checks;
  kernel_checks({checks, "kernel"}, root);
  permission_checks({checks, "permissions"}, root, attempts);
  machine_state_checks({checks, "machine"}, root);
  gpu_checks({checks, "GPU"}, root, attempts);
  output_checks({checks, "output"}, attempts);
  tool_checks({checks, "tools"}, attempts);
  return checks;
}

}  // namespace culprit::record
