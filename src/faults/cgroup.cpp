#include "faults/cgroup.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "core/file.h"
#include "core/text.h"
#include "faults/files.h"

namespace culprit::faults {

namespace {

constexpr std::int64_t kPeriodUs = 100'000;
constexpr std::int64_t kLeastQuotaUs = 1000;  // the kernel's minimum

bool has_word(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// Mount point of the hierarchy: version 1 with the controller cpu, or version 2 that has it.
std::optional<std::string> mount_of(bool version2, const CgroupRoots& roots) {
  const auto mounts = read_beginning(roots.mounts);
  if (!mounts) return std::nullopt;
  for (const std::string_view line : split_lines(*mounts)) {
    const auto words = split_words(line);
    if (words.size() < 4) continue;
    const std::string point(words[1]);
    if (!version2 && words[2] == "cgroup" && has_word(words[3], "cpu", ',')) return point;
    if (version2 && words[2] == "cgroup2") {
      const auto controllers = read_beginning(point + "/cgroup.controllers");
      if (!controllers) continue;
      for (const std::string_view controller : split_words(*controllers))
        if (controller == "cpu") return point;
    }
  }
  return std::nullopt;
}

std::string parent_of(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }

std::set<pid_t> members(const std::string& folder) {
  std::set<pid_t> pids;
  const auto text = read_beginning(folder + "/cgroup.procs");
  if (!text) return pids;
  for (const std::string_view line : split_lines(*text))
    if (const auto pid = parse_number<std::int64_t>(trim(line))) pids.insert(static_cast<pid_t>(*pid));
  return pids;
}

std::size_t threads_of(const std::vector<ProcessId>& processes) {
  std::size_t threads = 0;
  for (const ProcessId& process : processes)
    if (const auto status = read_beginning(fmt::format("/proc/{}/status", process.pid)))
      threads += static_cast<std::size_t>(std::max<std::int64_t>(1, number_after(*status, "Threads:").value_or(1)));
  return std::max<std::size_t>(1, threads);
}

/// CPUs that this one group allows; infinite without a quota.
double own_limit(const CpuCgroup& group, const std::string& folder) {
  if (group.version2) {
    const auto text = read_beginning(folder + "/cpu.max");
    if (!text) return HUGE_VAL;
    const auto words = split_words(*text);
    if (words.size() != 2) return HUGE_VAL;
    const auto quota = parse_number<std::int64_t>(words[0]);
    const auto period = parse_number<std::int64_t>(words[1]);
    if (!quota || !period || *period <= 0) return HUGE_VAL;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  const auto quota = read_number(folder + "/cpu.cfs_quota_us");
  const auto period = read_number(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return HUGE_VAL;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

Result<QuotaPlan> plan_version1(QuotaPlan plan, const std::vector<ProcessId>& processes, std::int64_t quota,
                                const std::string& name) {
  plan.group = plan.origin.folder() + "/" + name;
  if (access((plan.origin.folder() + "/cpu.cfs_quota_us").c_str(), F_OK) != 0 && plan.origin.path != "/")
    return environment_error("this kernel sets no CPU quotas", plan.origin.folder());
  plan.quota_file = plan.group + "/cpu.cfs_quota_us";
  plan.quota_text = fmt::format("{}", quota);
  plan.period_file = plan.group + "/cpu.cfs_period_us";
  plan.shares_text = fmt::format("{}", std::min<std::size_t>(262'144, 1024 * threads_of(processes)));
  plan.undo.push_back({Undo::Kind::leave_cgroup, {plan.group, plan.origin.folder()}});
  return plan;
}

Result<QuotaPlan> plan_version2(QuotaPlan plan, const std::vector<ProcessId>& processes, std::int64_t quota,
                                const std::string& name) {
  const std::string folder = plan.origin.folder();
  plan.quota_text = fmt::format("{} {}", quota, kPeriodUs);
  std::set<pid_t> tree;
  for (const ProcessId& process : processes) tree.insert(process.pid);
  const bool alone = std::ranges::includes(tree, members(folder));
  if (const auto before = read_beginning(folder + "/cpu.max"); before && alone && plan.origin.path != "/") {
    plan.own = false;
    plan.group = folder;
    plan.quota_file = folder + "/cpu.max";
    plan.undo.push_back({Undo::Kind::write_file, {plan.quota_file, before->substr(0, before->find('\n'))}});
    return plan;
  }
  const std::string parent = plan.origin.path == "/" ? folder : parent_of(folder);
  for (const char* const file : {"/memory.max", "/cpu.max"}) {
    const auto limit = plan.origin.path == "/" ? std::nullopt : read_beginning(folder + file);
    if (limit && !limit->starts_with("max"))
      return environment_error(fmt::format("other processes share this group, and leaving it would lift its limit {}",
                                           std::string_view(file).substr(1)),
                               folder, "start the target in a cgroup of its own");
  }
  const std::string control = parent + "/cgroup.subtree_control";
  const auto enabled = read_beginning(control);
  const auto words = enabled ? split_words(*enabled) : std::vector<std::string_view>();
  if (std::ranges::find(words, "cpu") == words.end())
    return environment_error("the CPU controller is not enabled for children of this group", parent,
                             fmt::format("write +cpu to {}", control));
  plan.group = parent + "/" + name;
  plan.quota_file = plan.group + "/cpu.max";
  plan.undo.push_back({Undo::Kind::leave_cgroup, {plan.group, folder}});
  return plan;
}

}  // namespace

Result<CpuCgroup> cpu_cgroup_of(pid_t pid, const CgroupRoots& roots) {
  const std::string file = fmt::format("{}/{}/cgroup", roots.proc, pid);
  const auto text = read_beginning(file);
  if (!text) return environment_error("there is no such process, or it has no cgroups", file);
  for (const bool version2 : {false, true}) {
    const auto mount = mount_of(version2, roots);
    if (!mount) continue;
    for (const std::string_view line : split_lines(*text)) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == std::string_view::npos || second == std::string_view::npos) continue;
      const std::string_view controllers = line.substr(first + 1, second - first - 1);
      const bool right = version2 ? line.starts_with("0::") : has_word(controllers, "cpu", ',');
      if (!right) continue;
      CpuCgroup group{version2, *mount, std::string(line.substr(second + 1))};
      if (group.path.find("/..") != std::string::npos || access(group.folder().c_str(), F_OK) != 0)
        return environment_error(fmt::format("the group {} is outside of what is visible here", group.path), *mount,
                                 "run outside of the container");
      return group;
    }
  }
  return environment_error("no cgroup hierarchy with the CPU controller is mounted", roots.mounts,
                           "mount one, or use the fault cpu");
}

double cpu_limit_of(const CpuCgroup& group, double cpus) {
  std::string folder = group.folder();
  while (folder.size() >= group.mount.size()) {
    cpus = std::min(cpus, own_limit(group, folder));
    if (folder == group.mount) break;
    folder = parent_of(folder);
  }
  return cpus;
}

Result<QuotaPlan> plan_quota(const std::vector<ProcessId>& processes, double cpus_left, const std::string& name,
                             const CgroupRoots& roots) {
  QuotaPlan plan;
  bool first = true;
  for (const ProcessId& process : processes) {
    auto group = cpu_cgroup_of(process.pid, roots);
    if (!group) {
      if (!process_facts(process.pid)) continue;  // it has ended meanwhile
      return group.error();
    }
    if (!first && group->path != plan.origin.path)
      return environment_error(
          fmt::format("the target's processes are in several groups: {} and {}", plan.origin.path, group->path),
          group->mount, "name a process whose descendants share its group");
    plan.origin = std::move(*group);
    first = false;
  }
  if (first) return environment_error("the target has ended", "");
  const auto quota = std::max<std::int64_t>(kLeastQuotaUs, std::llround(cpus_left * static_cast<double>(kPeriodUs)));
  return plan.origin.version2 ? plan_version2(std::move(plan), processes, quota, name)
                              : plan_version1(std::move(plan), processes, quota, name);
}

Status apply_quota(const QuotaPlan& plan) {
  constexpr mode_t kMode = 0755;
  if (plan.own && mkdir(plan.group.c_str(), kMode) != 0)
    return environment_error(fmt::format("the cgroup cannot be created: {}", errno_text(errno)), plan.group,
                             errno == EACCES || errno == EPERM || errno == EROFS ? "run as root" : "");
  if (!plan.period_file.empty()) {
    if (Status status = write_small_file(plan.period_file, fmt::format("{}", kPeriodUs)); !status) return status;
    if (Status status = write_small_file(plan.group + "/cpu.shares", plan.shares_text); !status) return status;
  }
  return write_small_file(plan.quota_file, plan.quota_text);
}

Result<std::size_t> move_tree(const QuotaPlan& plan, ProcessId root) {
  if (!plan.own) return std::size_t{0};
  constexpr int kMostRounds = 100;
  std::size_t moved = 0;
  // A process that forks while it is moved can leave a child behind: again, until a round finds nobody outside.
  for (int round = 0; round < kMostRounds; ++round) {
    const std::set<pid_t> inside = members(plan.group);
    bool complete = true;
    for (const ProcessId& process : process_tree(root)) {
      if (inside.contains(process.pid)) continue;
      const Status status = write_small_file(plan.group + "/cgroup.procs", fmt::format("{}", process.pid));
      if (!status) {
        const auto facts = process_facts(process.pid);
        if (!facts || facts->id != process || facts->state == 'Z' || facts->state == 'X') continue;
        return status.error();
      }
      complete = false;
      ++moved;
    }
    if (complete) break;
  }
  return moved;
}

std::optional<std::string> leave_cgroup(const std::string& own, const std::string& origin) {
  constexpr auto kLongest = std::chrono::seconds(2);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (true) {
    std::string trouble;
    for (const pid_t pid : members(own))
      if (const Status status = write_small_file(origin + "/cgroup.procs", fmt::format("{}", pid)); !status)
        trouble = to_string(status.error());
    if (rmdir(own.c_str()) == 0 || errno == ENOENT) return std::nullopt;
    if (trouble.empty()) trouble = errno_text(errno);
    if (std::chrono::steady_clock::now() > deadline)
      return fmt::format("the cgroup {} was not removed: {}", own, trouble);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

ThrottleCount throttle_count(const QuotaPlan& plan) {
  ThrottleCount count;
  const auto text = read_beginning(plan.group + "/cpu.stat");
  if (!text) return count;
  count.periods = number_after(*text, "nr_periods").value_or(0);
  count.throttled_periods = number_after(*text, "nr_throttled").value_or(0);
  count.throttled_ns = plan.origin.version2 ? number_after(*text, "throttled_usec").value_or(0) * 1000
                                            : number_after(*text, "throttled_time").value_or(0);
  return count;
}

}  // namespace culprit::faults
