#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/text.h"
#include "record/collector/build_id.h"
#include "record/collector/cgroups.h"
#include "record/collector/kernel_text.h"
#include "record/collector/process_name.h"
#include "record/collector/target_file.h"
#include "record/environment/allow_list.h"
#include "record/environment/facts.h"
#include "record/environment/packages.h"

namespace culprit::record {

namespace {

constexpr std::size_t kLargestText = std::size_t{16} << 20;

std::string link_target(const std::string& path) {
  char text[4096];
  const ssize_t n = readlink(path.c_str(), text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void limits(std::vector<Fact>& facts, const std::string& folder) {
  const std::string text = read_text(folder + "/limits", 16 * 1024).value_or("");
  constexpr std::array<std::pair<std::string_view, const char*>, 7> kLimits = {
      {{"Max locked memory", "locked_memory"},
       {"Max open files", "open_files"},
       {"Max processes", "processes"},
       {"Max stack size", "stack"},
       {"Max address space", "address_space"},
       {"Max realtime priority", "realtime_priority"},
       {"Max nice priority", "nice"}}};
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    for (const auto& [begin, key] : kLimits) {
      if (!line.starts_with(begin)) continue;
      line.remove_prefix(begin.size());
      add_fact(facts, fmt::format("limit.{}", key), take_word(line));
      break;
    }
  }
}

/// Who stops it at every call, or may: no recorder, which does so for moments. `tracer` may be a thread.
void traced(std::vector<Fact>& facts, const std::string& root, std::string_view tracer) {
  if (tracer == "0") return;
  const std::string name = read_word(fmt::format("{}/proc/{}/comm", root, tracer));
  const std::string text = read_text(fmt::format("{}/proc/{}/status", root, tracer), 64 * 1024).value_or("");
  const bool is_own = text.find(fmt::format("\nTgid:\t{}\n", getpid())) != std::string::npos;
  if (!is_own && !name.starts_with("culprit")) add_fact(facts, "traced_by", name);
}

void status(std::vector<Fact>& facts, const std::string& root, const std::string& folder) {
  const std::string text = read_text(folder + "/status", 64 * 1024).value_or("");
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kLines = {
      {{"Cpus_allowed_list", "cpus_allowed"},
       {"Mems_allowed_list", "numa_nodes_allowed"},
       {"Seccomp", "seccomp"},
       {"NoNewPrivs", "no_new_privs"},
       {"THP_enabled", "transparent_hugepages"},
       {"Threads", "threads_at_join"}}};
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    for (const auto& [name, key] : kLines)
      if (line.substr(0, colon) == name) add_fact(facts, key, line.substr(colon + 1));
    if (line.substr(0, colon) == "TracerPid") traced(facts, root, trim(line.substr(colon + 1)));
    if (line.substr(0, colon) != "NSpid") continue;
    std::string_view pids = line.substr(colon + 1);
    std::size_t depth = 0;
    while (!take_word(pids).empty()) ++depth;
    if (depth > 1) add_fact(facts, "container.pid_namespace_depth", std::to_string(depth));
  }
}

void scheduling(std::vector<Fact>& facts, const std::string& folder) {
  const std::string text = read_text(folder + "/stat", 4096).value_or("");
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos) return;
  std::string_view rest = std::string_view(text).substr(close + 1);
  std::vector<std::string_view> words;  // the first is field 3
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) words.push_back(word);
  const auto field = [&](std::size_t n) { return n - 3 < words.size() ? words[n - 3] : std::string_view(); };
  add_fact(facts, "sched.nice", field(19));
  constexpr std::array kPolicies = {"other", "fifo", "round_robin", "batch", "", "idle", "deadline", "ext"};
  const auto policy = parse_number<std::uint64_t>(field(41));
  if (policy) add_fact(facts, "sched.policy", *policy < kPolicies.size() ? kPolicies[*policy] : field(41));
  if (const auto priority = parse_number<std::uint64_t>(field(40)); priority && *priority > 0)
    add_fact(facts, "sched.realtime_priority", field(40));
  add_fact(facts, "oom_score_adj", read_word(folder + "/oom_score_adj"));
}

void groups(std::vector<Fact>& facts, const std::string& root, const std::string& folder) {
  const std::string text = read_text(folder + "/cgroup", 64 * 1024).value_or("");
  const auto mounts = parse_cgroup_mounts(read_text(root + "/proc/self/mountinfo", kLargestText).value_or(""), root);
  const CgroupFolders found = find_cgroups(text, mounts);
  if (const auto quota = tightest_cpu_quota(found.cpu, found.cpu_v2))
    add_fact(facts, "cgroup.cpu.quota", fmt::format("{:.3f}", quota->cores));
  else if (!found.cpu.empty())
    add_fact(facts, "cgroup.cpu.quota", "none");
  if (!found.cpu.empty())
    add_fact(facts, found.cpu_v2 ? "cgroup.cpu.weight" : "cgroup.cpu.shares",
             read_word(found.cpu.front() + (found.cpu_v2 ? "/cpu.weight" : "/cpu.shares")));
  if (const auto limit = tightest_memory_limit(found.memory, found.memory_v2))
    add_fact(facts, "cgroup.memory.limit_bytes", std::to_string(*limit));
  else if (!found.memory.empty())
    add_fact(facts, "cgroup.memory.limit_bytes", "none");
  if (!found.cpuset.empty()) {
    const std::string& set = found.cpuset.front();
    add_fact(facts, "cgroup.cpuset.cpus",
             read_word(set + (found.cpuset_v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus")));
    add_fact(facts, "cgroup.cpuset.numa_nodes",
             read_word(set + (found.cpuset_v2 ? "/cpuset.mems.effective" : "/cpuset.effective_mems")));
  }
  for (const char* hint :
       {"kubepods", "docker", "containerd", "crio", "libpod", "lxc", "garden", "machine.slice", "slurm"})
    if (text.find(hint) != std::string::npos) {
      add_fact(facts, "container.kind", hint);
      break;
    }
  for (const char* space : {"mnt", "pid", "net", "cgroup", "user"}) {
    const std::string target = link_target(folder + "/ns/" + space);
    const std::string own = link_target(root + "/proc/self/ns/" + space);
    if (!target.empty() && !own.empty() && target != own)
      add_fact(facts, fmt::format("container.namespace.{}", space), "its own");
  }
}

/// Paths of mapped files, each once, sorted.
std::vector<std::string> mapped_files(const std::string& folder) {
  const std::string text = read_text(folder + "/maps", kLargestText).value_or("");
  std::set<std::string> paths;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos || line.ends_with(" (deleted)")) continue;
    constexpr std::size_t kMost = 10'000;
    if (paths.size() >= kMost) break;
    paths.emplace(line.substr(slash));
  }
  return {paths.begin(), paths.end()};
}

void libraries(std::vector<Fact>& facts, const std::string& folder, const std::vector<std::string>& mapped) {
  constexpr std::array kLibraries = {
      "libcuda.so",     "libcudart.so",   "libcudart-",  "libnccl.so",       "libnccl-net",     "libcublas.so",
      "libcublasLt.so", "libcudnn.so",    "libcupti.so", "libnvrtc.so",      "libnvidia-ml",    "libopenblas",
      "libmkl_rt.so",   "libmkl_core.so", "libblas.so",  "libtorch_cuda.so", "libtorch_cpu.so", "libtorch.so",
      "libgomp",        "libiomp5",       "libtcmalloc", "libjemalloc",      "libmimalloc",     "libc.so.6",
      "libc-2.",        "libibverbs.so",  "libucp.so",   "libfabric.so",     "libnvToolsExt",   "libcusparse.so",
      "libcufft.so",    "libpython3",     "libtensorrt", "libnvinfer.so",    "libtinyllm"};
  std::size_t shown = 0;
  for (const std::string& path : mapped) {
    const std::string_view name = file_name(path);
    const bool known = std::ranges::any_of(kLibraries, [&](const char* begin) { return name.starts_with(begin); });
    constexpr std::size_t kMost = 100;
    if (!known || ++shown > kMost) continue;
    const auto id = read_build_id(open_target_file(folder + "/root", path).path());
    add_fact(facts, fmt::format("library.{}", name), id ? "build-id " + *id : "loaded");
  }
}

/// As it was called, where comm agrees: a file may have several names (redis-server links to redis-check-rdb).
std::string program_name(const std::string& root, std::int64_t pid, const std::string& file) {
  const ProcessNames names = read_process_names(root + "/proc", pid);
  std::string called(short_title(names));
  if (called.ends_with(':')) called.pop_back();
  return !called.empty() && called == whole_comm(names) ? called : std::string(file_name(file));
}

}  // namespace

std::vector<Fact> target_facts(const std::string& root, std::int64_t pid) {
  std::vector<Fact> facts;
  const std::string folder = fmt::format("{}/proc/{}", root, pid);
  if (access(folder.c_str(), F_OK) != 0) return facts;
  const std::string program = link_target(folder + "/exe");
  add_fact(facts, "program", program_name(root, pid, program));
  limits(facts, folder);
  status(facts, root, folder);
  scheduling(facts, folder);
  groups(facts, root, folder);
  const std::string environ = read_text(folder + "/environ", std::size_t{1} << 20).value_or("");
  for (const auto& [name, value] : allowed_variables(environ)) add_fact(facts, "variable." + name, value);
  const std::string cmdline = read_text(folder + "/cmdline", std::size_t{1} << 20).value_or("");
  for (const auto& [name, value] : allowed_options(cmdline)) add_fact(facts, "option." + name, value);
  const auto mapped = mapped_files(folder);
  libraries(facts, folder, mapped);
  add_fact(facts, "python.version", python_version(mapped, program));
  // Used to find packages, never shown.
  std::string virtual_environment;
  constexpr std::string_view kVirtualEnvironment = "VIRTUAL_ENV=";
  for (std::size_t at = 0; at < environ.size();) {
    const std::size_t end = std::min(environ.find('\0', at), environ.size());
    const std::string_view entry = std::string_view(environ).substr(at, end - at);
    if (entry.starts_with(kVirtualEnvironment)) virtual_environment = entry.substr(kVirtualEnvironment.size());
    at = end + 1;
  }
  std::map<std::string, std::string> versions;
  for (const std::string& packages : package_folders(mapped, program, virtual_environment))
    versions.merge(frameworks(list_folder(open_target_folder(folder + "/root", packages).path())));
  for (const auto& [name, version] : versions) add_fact(facts, "package." + name, version);
  return facts;
}

}  // namespace culprit::record
