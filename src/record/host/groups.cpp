#include "record/host/groups.h"
#include "core/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "record/host/memory.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostGroups = 32;

/// Calls `use(key, value)` for every "key value" line.
template <class Use>
void each_pair(std::string_view text, Use use) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view key = take_word(line);
    if (const auto value = parse_number<std::uint64_t>(take_word(line))) use(key, *value);
  }
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// The folder with the smallest number in a file of that name on the way up, and the number.
struct Tightest {
  std::string folder;
  std::uint64_t bytes = 0;
};

std::optional<Tightest> tightest(const std::vector<std::string>& folders, std::string_view file) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 62;  // as version 1 says "no limit"
  std::optional<Tightest> best;
  for (const std::string& folder : folders) {
    const auto bytes = parse_number<std::uint64_t>(read_word(fmt::format("{}/{}", folder, file)));
    if (bytes && *bytes < kNone && (!best || *bytes < best->bytes)) best = Tightest{folder, *bytes};
  }
  return best;
}

/// Pages that were read back though they had been in memory a while ago. nullopt: this kernel does not count them.
std::optional<std::uint64_t> refaults_in(std::string_view stat, bool v2) {
  // Version 1 counts the groups below in lines of their own.
  const std::string_view prefix = v2 ? "" : "total_";
  std::optional<std::uint64_t> pages;
  each_pair(stat, [&](std::string_view key, std::uint64_t value) {
    if (!key.starts_with(prefix)) return;
    key.remove_prefix(prefix.size());
    if (key == "workingset_refault" || key == "workingset_refault_anon" || key == "workingset_refault_file")
      pages = pages.value_or(0) + value;
  });
  return pages;
}

/// The line of version 2 in the text of /proc/PID/cgroup; empty: there is none.
std::string_view unified_line(std::string_view cgroup_text) {
  while (!cgroup_text.empty())
    if (const std::string_view line = take_line(cgroup_text); line.starts_with("0::")) return line;
  return {};
}

}  // namespace

GroupSampler::GroupSampler(const std::string& root) : root_(root) {
  const auto text = read_text(root + "/proc/self/mountinfo", std::size_t{4} << 20);
  if (text) mounts_ = parse_cgroup_mounts(*text, root);
  if (mounts_.empty()) trouble_ = "no cgroup file system is mounted";
}

void GroupSampler::place(std::int64_t pid) {
  if (mounts_.empty()) return;
  Place& place = place_of_[pid];
  if (!place.file.is_open()) place.file = KernelFile(fmt::format("{}/proc/{}/cgroup", root_, pid));
  const std::string_view text = place.file.read(buffer_);
  if (text.empty()) return forget(pid);
  if (text == place.text) return;
  // What the track of its limits says of the group it leaves has to be taken back in the new one.
  const auto left = groups_.find(place.text);
  const bool had_quota = left != groups_.end() && left->second.pid == pid && left->second.had_quota;
  const bool had_limit = left != groups_.end() && left->second.pid == pid && left->second.had_limit;
  const bool had_high = left != groups_.end() && left->second.pid == pid && left->second.had_high;
  leave_group(pid, place.text);
  place.text = text;
  auto found = groups_.find(place.text);
  if (found == groups_.end()) {
    if (groups_.size() >= kMostGroups) {
      trouble_ = fmt::format("the targets are in more than {} groups; the first {} are seen", kMostGroups, kMostGroups);
      place.text.clear();  // there may be room later
      return;
    }
    found = groups_.emplace(place.text, Group{}).first;
    found->second.folders = find_cgroups(place.text, mounts_);
    open_group(found->second, pid);
    open_pressure(found->second, place.text);
    found->second.had_quota = had_quota;
    found->second.had_limit = had_limit;
    found->second.had_high = had_high;
  }
  found->second.members.insert(pid);
}

void GroupSampler::leave_group(std::int64_t pid, const std::string& text) {
  const auto group = groups_.find(text);
  if (group == groups_.end()) return;
  group->second.members.erase(pid);
  if (group->second.members.empty()) groups_.erase(group);
}

void GroupSampler::forget(std::int64_t pid) {
  const auto place = place_of_.find(pid);
  if (place == place_of_.end()) return;
  leave_group(pid, place->second.text);
  place_of_.erase(place);
}

void GroupSampler::open_group(Group& group, std::int64_t pid) {
  const auto track = [&](const char* name, const char* unit) { return Track{name, unit, pid}; };
  group.pid = pid;
  group.used = {track("cgroup.cpu.used", "count"), group.folders.cpu_v2 ? 1e-6 : 1e-9};
  group.periods = {track("cgroup.cpu.periods", "count/s")};
  group.throttled_periods = {track("cgroup.cpu.throttled_periods", "count/s")};
  group.throttled_time = {track("cgroup.cpu.throttled_time", "ns/s"), group.folders.cpu_v2 ? 1e3 : 1.0};
  group.limit_hits = {track("cgroup.memory.limit_hits", "count/s")};
  group.high_hits = {track("cgroup.memory.high_hits", "count/s")};
  group.oom_kills = {track("cgroup.memory.oom_kills", "count/s")};
  group.refaults = {track("cgroup.memory.refaults", "count/s")};
  group.quota = track("cgroup.cpu.quota", "count");
  group.memory_used = track("cgroup.memory.used", "bytes");
  group.memory_limit = track("cgroup.memory.limit", "bytes");
  group.memory_high = track("cgroup.memory.high", "bytes");
  group.cpuset = track("cgroup.cpuset.cpus", "count");
  const CgroupFolders& f = group.folders;
  if (!f.cpuacct.empty()) group.usage = KernelFile(f.cpuacct.front() + "/cpuacct.usage");
  if (!f.memory.empty()) {
    group.memory = KernelFile(f.memory.front() + (f.memory_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    group.memory_stat = KernelFile(f.memory.front() + "/memory.stat");
    // Who is killed is counted in its own group.
    if (f.memory_v2) group.memory_kills = KernelFile(f.memory.front() + "/memory.events");
  }
  find_throttle(group);
  find_limit(group);
}

void GroupSampler::open_pressure(Group& group, const std::string& cgroup_text) {
  const std::vector<std::string> folders = find_cgroups(unified_line(cgroup_text), mounts_).cpu;
  // The root's is that of the machine; it alone has no events.
  if (folders.empty() || !exists(folders.front() + "/cgroup.events")) return;
  constexpr std::array<const char*, 3> kResources = {"cpu", "io", "memory"};
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    const auto track = [&](const char* kind) {
      return RateTrack{{fmt::format("cgroup.pressure.{}.{}", kResources[i], kind), "fraction", group.pid}, 1e-6};
    };
    group.pressures[i] = {KernelFile(fmt::format("{}/{}.pressure", folders.front(), kResources[i])), track("some"),
                          track("full")};
  }
}

void GroupSampler::find_throttle(Group& group) {
  const CgroupFolders& f = group.folders;
  if (f.cpu.empty()) return;
  const auto tightest = tightest_cpu_quota(f.cpu, f.cpu_v2);
  const std::string& folder = tightest ? tightest->folder : f.cpu.front();
  if (folder == group.throttle_folder) return;
  group.throttle_folder = folder;
  group.cpu_stat = KernelFile(folder + "/cpu.stat");
  for (RateTrack* track : {&group.periods, &group.throttled_periods, &group.throttled_time}) track->counter = {};
  if (f.cpu_v2) group.used.counter = {};
}

/// Whoever meets the limit of a group above is counted there. What happens in a group counts in those above as well,
/// but for their local events.
void GroupSampler::find_limit(Group& group) {
  const CgroupFolders& f = group.folders;
  if (f.memory.empty()) return;
  const char* const file = f.memory_v2 ? "/memory.events.local" : "/memory.failcnt";
  auto limit = tightest(f.memory, f.memory_v2 ? "memory.max" : "memory.limit_in_bytes");
  const auto high = f.memory_v2 ? tightest(f.memory, "memory.high") : std::nullopt;
  if (high && (!limit || high->bytes < limit->bytes)) limit = high;
  std::string path = (limit ? limit->folder : f.memory.front()) + file;
  if (!exists(path)) path = f.memory.front() + (f.memory_v2 ? "/memory.events" : file);
  if (path == group.limit_file) return;
  group.limit_file = path;
  group.memory_events = KernelFile(path);
  for (RateTrack* track : {&group.limit_hits, &group.high_hits}) track->counter = {};
}

void GroupSampler::sample(Ns now, Emitter& emitter) {
  for (auto& found : groups_) {
    Group& group = found.second;
    each_pair(group.cpu_stat.read(buffer_), [&](std::string_view key, std::uint64_t value) {
      if (key == "nr_periods") group.periods.put(emitter, now, value);
      if (key == "nr_throttled") group.throttled_periods.put(emitter, now, value);
      if (key == (group.folders.cpu_v2 ? "throttled_usec" : "throttled_time"))
        group.throttled_time.put(emitter, now, value);
      if (key == "usage_usec" && group.folders.cpu_v2) group.used.put(emitter, now, value);
    });
    if (group.usage.is_open())
      if (const auto value = parse_number<std::uint64_t>(trim(group.usage.read(buffer_))))
        group.used.put(emitter, now, *value);
    if (const auto value = parse_number<std::uint64_t>(trim(group.memory.read(buffer_))))
      emitter.put(group.memory_used, now, static_cast<double>(*value));
    const std::string_view events = group.memory_events.read(buffer_);
    if (!group.folders.memory_v2) {
      if (const auto value = parse_number<std::uint64_t>(trim(events))) group.limit_hits.put(emitter, now, *value);
    } else {
      each_pair(events, [&](std::string_view key, std::uint64_t value) {
        if (key == "max") group.limit_hits.put(emitter, now, value);
        if (key == "high") group.high_hits.put(emitter, now, value);
      });
      each_pair(group.memory_kills.read(buffer_), [&](std::string_view key, std::uint64_t value) {
        if (key == "oom_kill") group.oom_kills.put(emitter, now, value);
      });
    }
  }
}

void GroupSampler::refresh(Ns now, Emitter& emitter) {
  if (groups_.empty()) return;
  if (next_ >= groups_.size()) next_ = 0;
  Group& group = std::next(groups_.begin(), static_cast<std::ptrdiff_t>(next_++))->second;
  const CgroupFolders& f = group.folders;
  find_throttle(group);
  find_limit(group);
  // A limit that went away is written once as 0: "none".
  const auto quota = tightest_cpu_quota(f.cpu, f.cpu_v2);
  if (quota || group.had_quota) emitter.put(group.quota, now, quota ? quota->cores : 0);
  group.had_quota = group.had_quota || quota.has_value();
  const auto limit = tightest_memory_limit(f.memory, f.memory_v2);
  if (limit || group.had_limit) emitter.put(group.memory_limit, now, static_cast<double>(limit.value_or(0)));
  group.had_limit = group.had_limit || limit.has_value();
  sample_memory_in_turns(group, now, emitter);
  if (f.cpuset.empty()) return;
  const auto cpus =
      count_cpu_list(read_word(f.cpuset.front() + (f.cpuset_v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus")));
  if (cpus && *cpus > 0) emitter.put(group.cpuset, now, static_cast<double>(*cpus));
}

void GroupSampler::sample_memory_in_turns(Group& group, Ns now, Emitter& emitter) {
  const CgroupFolders& f = group.folders;
  const auto high = f.memory_v2 ? tightest(f.memory, "memory.high") : std::nullopt;
  if (high || group.had_high) emitter.put(group.memory_high, now, high ? static_cast<double>(high->bytes) : 0);
  group.had_high = group.had_high || high.has_value();
  if (group.memory_stat.is_open())
    if (const auto pages = refaults_in(group.memory_stat.read(buffer_), f.memory_v2))
      group.refaults.put(emitter, now, *pages);
  for (Pressure& pressure : group.pressures) {
    if (!pressure.file.is_open()) continue;
    const std::string_view text = pressure.file.read(buffer_);
    if (const auto total = pressure_total(text, "some")) pressure.some.put(emitter, now, *total);
    if (const auto total = pressure_total(text, "full")) pressure.full.put(emitter, now, *total);
  }
}

void GroupSampler::sights(std::vector<Sight>& out) const {
  const auto count = [&](auto has) {
    std::size_t n = 0;
    for (const auto& [text, group] : groups_) n += has(group) ? std::size_t{1} : std::size_t{0};
    return n;
  };
  const auto line = [&](std::string what, std::size_t seen, const char* controller) {
    Sight sight{std::move(what), groups_.empty() ? trouble_.empty() : seen == groups_.size(), "", ""};
    if (!sight.available) {
      sight.why = !trouble_.empty() ? trouble_
                                    : fmt::format(
                                          "the {} controller of the target's group cannot be seen from here "
                                          "(another cgroup namespace, or not enabled for that group)",
                                          controller);
      sight.remedy =
          fmt::format("record on the host, or enable the {} controller in cgroup.subtree_control", controller);
    }
    out.push_back(std::move(sight));
  };
  line("CPU quota and throttling of the target's control group",
       count([](const Group& g) { return g.cpu_stat.is_open(); }), "cpu");
  line("memory limit and use of the target's control group", count([](const Group& g) { return g.memory.is_open(); }),
       "memory");
}

}  // namespace culprit::record
