#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/text.h"
#include "core/utf8.h"
#include "record/collector/cgroups.h"
#include "record/collector/kernel_text.h"
#include "record/environment/facts.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostDevices = 64;

/// "[always] madvise never" -> "always".
std::string chosen(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return text;
  return text.substr(begin + 1, end - begin - 1);
}

void kernel(std::vector<Fact>& facts, const std::string& root) {
  const std::string sys = root + "/proc/sys/";
  add_fact(facts, "kernel.release", read_word(sys + "kernel/osrelease"));
  add_fact(facts, "kernel.version", read_word(sys + "kernel/version"));
  std::string release = read_text(root + "/etc/os-release", 16 * 1024).value_or("");
  std::string_view rest = release;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    if (!line.starts_with("PRETTY_NAME=")) continue;
    line.remove_prefix(12);
    while (!line.empty() && (line.front() == '"' || line.front() == '\'')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == '"' || line.back() == '\'')) line.remove_suffix(1);
    add_fact(facts, "distribution", line);
  }
  constexpr std::array kParameters = {"mitigations",
                                      "isolcpus",
                                      "nohz_full",
                                      "rcu_nocbs",
                                      "idle",
                                      "intel_pstate",
                                      "amd_pstate",
                                      "cpufreq.default_governor",
                                      "processor.max_cstate",
                                      "intel_idle.max_cstate",
                                      "transparent_hugepage",
                                      "psi",
                                      "iommu",
                                      "intel_iommu",
                                      "amd_iommu",
                                      "preempt",
                                      "numa_balancing",
                                      "default_hugepagesz",
                                      "hugepagesz",
                                      "hugepages",
                                      "cgroup_no_v1",
                                      "systemd.unified_cgroup_hierarchy",
                                      "lockdown",
                                      "clocksource",
                                      "tsc",
                                      "nosmt",
                                      "swapaccount",
                                      "hpet"};
  const std::string line = read_word(root + "/proc/cmdline");
  rest = line;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const std::string_view name = word.substr(0, word.find('='));
    if (std::ranges::find(kParameters, name) == kParameters.end()) continue;
    const bool bare = name.size() == word.size();
    add_fact(facts, fmt::format("kernel.boot.{}", name), bare ? std::string_view("set") : word.substr(name.size() + 1));
  }
  constexpr std::array kSettings = {"kernel/perf_event_paranoid",
                                    "kernel/unprivileged_bpf_disabled",
                                    "kernel/kptr_restrict",
                                    "kernel/yama/ptrace_scope",
                                    "kernel/sched_autogroup_enabled",
                                    "kernel/sched_rt_runtime_us",
                                    "kernel/numa_balancing",
                                    "kernel/task_delayacct",
                                    "kernel/nmi_watchdog",
                                    "kernel/perf_event_max_sample_rate",
                                    "vm/swappiness",
                                    "vm/overcommit_memory",
                                    "vm/dirty_ratio",
                                    "vm/dirty_background_ratio",
                                    "vm/zone_reclaim_mode",
                                    "vm/min_free_kbytes",
                                    "vm/nr_hugepages",
                                    "vm/max_map_count",
                                    "net/ipv4/tcp_congestion_control",
                                    "net/core/default_qdisc",
                                    "net/core/rmem_max",
                                    "net/core/wmem_max"};
  for (const char* setting : kSettings) {
    std::string key = setting;
    std::ranges::replace(key, '/', '.');
    add_fact(facts, "setting." + key, read_word(sys + setting));
  }
  add_fact(facts, "kernel.lockdown", chosen(read_word(root + "/sys/kernel/security/lockdown")));
  add_fact(facts, "kernel.lsm", read_word(root + "/sys/kernel/security/lsm"));
  add_fact(facts, "kernel.clocksource",
           read_word(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
}

void cpus(std::vector<Fact>& facts, const std::string& root) {
  const std::string text = read_text(root + "/proc/cpuinfo", std::size_t{4} << 20).value_or("");
  std::string_view rest = text;
  std::map<std::string, std::string> first;
  std::set<std::string> packages;
  std::set<std::string> microcodes;
  std::set<std::string> cores;
  std::string package;
  std::size_t count = 0;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string key(trim(line.substr(0, colon)));
    const std::string value(trim(line.substr(colon + 1)));
    first.emplace(key, value);
    if (key == "processor") ++count;
    if (key == "physical id") packages.insert(package = value);
    if (key == "core id") cores.insert(fmt::format("{}/{}", package, value));
    if (key == "microcode") microcodes.insert(value);
  }
  add_fact(facts, "cpu.model", first["model name"]);
  add_fact(facts, "cpu.vendor", first["vendor_id"]);
  if (first.contains("cpu family"))
    add_fact(facts, "cpu.id",
             fmt::format("family {} model {} stepping {}", first["cpu family"], first["model"], first["stepping"]));
  if (count != 0) add_fact(facts, "cpu.count", std::to_string(count));
  if (!packages.empty()) add_fact(facts, "cpu.packages", std::to_string(packages.size()));
  if (!cores.empty()) add_fact(facts, "cpu.cores", std::to_string(cores.size()));
  add_fact(facts, "cpu.microcode", fmt::format("{}", fmt::join(microcodes, ", ")));
  const std::string flags = " " + first["flags"] + " ";
  std::vector<std::string> known;
  for (const char* flag : {"avx2", "avx512f", "avx512_bf16", "avx_vnni", "amx_tile", "amx_bf16", "hypervisor",
                           "constant_tsc", "nonstop_tsc"})
    if (flags.find(fmt::format(" {} ", flag)) != std::string::npos) known.emplace_back(flag);
  add_fact(facts, "cpu.features", fmt::format("{}", fmt::join(known, " ")));

  const std::string folder = root + "/sys/devices/system/cpu/";
  add_fact(facts, "cpu.online", read_word(folder + "online"));
  add_fact(facts, "cpu.isolated", read_word(folder + "isolated"));
  add_fact(facts, "cpu.smt", read_word(folder + "smt/control"));
  add_fact(facts, "cpu.numa_nodes", read_word(root + "/sys/devices/system/node/online"));
  add_fact(facts, "cpu.boost", read_word(folder + "cpufreq/boost"));
  add_fact(facts, "cpu.no_turbo", read_word(folder + "intel_pstate/no_turbo"));
  std::map<std::string, std::set<std::string>> frequency;
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("cpu") || !parse_number<std::uint64_t>(std::string_view(name).substr(3))) continue;
    for (const char* file : {"scaling_governor", "scaling_driver", "scaling_min_freq", "scaling_max_freq",
                             "cpuinfo_max_freq", "energy_performance_preference"}) {
      const std::string value = read_word(fmt::format("{}{}/cpufreq/{}", folder, name, file));
      if (!value.empty()) frequency[file].insert(value);
    }
  }
  for (const auto& [file, values] : frequency)
    add_fact(facts, fmt::format("cpu.{}{}", file, file.ends_with("_freq") ? "_khz" : ""),
             fmt::format("{}", fmt::join(values, ", ")));
  for (const std::string& name : list_folder(folder + "vulnerabilities", kMostDevices))
    add_fact(facts, fmt::format("cpu.vulnerability.{}", name),
             read_word(fmt::format("{}vulnerabilities/{}", folder, name)));
  const std::string dmi = root + "/sys/class/dmi/id/";
  add_fact(facts, "machine.vendor", read_word(dmi + "sys_vendor"));
  add_fact(facts, "machine.product", read_word(dmi + "product_name"));
  add_fact(facts, "machine.bios", read_word(dmi + "bios_version"));
  add_fact(facts, "machine.hypervisor", read_word(root + "/sys/hypervisor/type"));
}

void memory(std::vector<Fact>& facts, const std::string& root) {
  const std::string text = read_text(root + "/proc/meminfo", 64 * 1024).value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    const std::string_view key = take_word(line);
    const auto kilobytes = parse_number<std::uint64_t>(take_word(line));
    if (!kilobytes || *kilobytes > (std::uint64_t{1} << 50)) continue;
    const std::string bytes = std::to_string(*kilobytes * 1024);
    if (key == "MemTotal:") add_fact(facts, "memory.total_bytes", bytes);
    if (key == "SwapTotal:") add_fact(facts, "memory.swap_bytes", bytes);
  }
  for (const char* name : {"enabled", "defrag", "shmem_enabled"})
    add_fact(facts, fmt::format("memory.transparent_hugepage.{}", name),
             chosen(read_word(fmt::format("{}/sys/kernel/mm/transparent_hugepage/{}", root, name))));
}

void devices(std::vector<Fact>& facts, const std::string& root) {
  std::size_t shown = 0;
  for (const std::string& disk : list_folder(root + "/sys/block")) {
    if (disk.starts_with("loop") || disk.starts_with("ram") || ++shown > kMostDevices) continue;
    const std::string queue = fmt::format("{}/sys/block/{}/queue/", root, disk);
    add_fact(facts, fmt::format("disk.{}.scheduler", disk), chosen(read_word(queue + "scheduler")));
    add_fact(facts, fmt::format("disk.{}.rotational", disk), read_word(queue + "rotational"));
  }
  shown = 0;
  for (const std::string& interface : list_folder(root + "/sys/class/net")) {
    if (++shown > kMostDevices) break;
    const std::string folder = fmt::format("{}/sys/class/net/{}/", root, interface);
    add_fact(facts, fmt::format("net.{}.mtu", interface), read_word(folder + "mtu"));
    const std::string speed = read_word(folder + "speed");
    if (parse_number<std::uint64_t>(speed)) add_fact(facts, fmt::format("net.{}.speed_mbit", interface), speed);
  }
  std::vector<std::string> fabrics = list_folder(root + "/sys/class/infiniband", kMostDevices);
  add_fact(facts, "net.infiniband", fmt::format("{}", fmt::join(fabrics, " ")));
  const auto mountinfo = read_text(root + "/proc/self/mountinfo", std::size_t{4} << 20);
  bool v1 = false;
  bool v2 = false;
  for (const CgroupMount& mount : parse_cgroup_mounts(mountinfo.value_or(""), root)) (mount.v2 ? v2 : v1) = true;
  add_fact(facts, "cgroup.version", v1 && v2 ? "1 and 2" : v1 ? "1" : v2 ? "2" : "");
}

}  // namespace

void add_fact(std::vector<Fact>& facts, std::string_view key, std::string_view value) {
  constexpr std::size_t kLongest = 512;
  value = trim(value);
  if (value.empty()) return;
  std::string text = repair_utf8(value.substr(0, kLongest));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  facts.push_back({repair_utf8(key), std::move(text)});
}

std::vector<Fact> host_facts(const std::string& root, bool with_hostname) {
  std::vector<Fact> facts;
  kernel(facts, root);
  cpus(facts, root);
  memory(facts, root);
  devices(facts, root);
  if (with_hostname) add_fact(facts, "hostname", read_word(root + "/proc/sys/kernel/hostname"));
  return facts;
}

}  // namespace culprit::record
