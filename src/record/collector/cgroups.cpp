#include "record/collector/cgroups.h"
#include "core/text.h"

#include <unistd.h>

#include <algorithm>

#include "record/collector/kernel_text.h"

namespace culprit::record {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The group `path` and its parents as folders. Empty when it lies outside of what is mounted.
std::vector<std::string> folders_of(const CgroupMount& mount, std::string path) {
  if (!path.starts_with('/') || path.find("/..") != std::string::npos) return {};
  if (mount.inside != "/") {
    if (!path.starts_with(mount.inside)) return {};
    path.erase(0, mount.inside.size());
    if (!path.empty() && path.front() != '/') return {};
  }
  while (path.ends_with('/')) path.pop_back();
  std::vector<std::string> folders;
  for (;;) {
    folders.push_back(mount.folder + path);
    if (path.empty()) return folders;
    path.erase(path.rfind('/'));
  }
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// A process's group may be deeper than those that have the controller's files (the root of version 2 has fewer).
bool any_has(const std::vector<std::string>& folders, std::string_view file) {
  return std::ranges::any_of(folders, [&](const std::string& f) { return exists(f + "/" + std::string(file)); });
}

}  // namespace

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& root) {
  std::vector<CgroupMount> mounts;
  while (!mountinfo.empty()) {
    std::string_view line = take_line(mountinfo);
    for (int skip = 0; skip < 3; ++skip) take_word(line);
    const std::string inside = unescape(take_word(line));
    const std::string folder = unescape(take_word(line));
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    line.remove_prefix(dash + 3);
    const std::string_view type = take_word(line);
    if (type != "cgroup" && type != "cgroup2") continue;
    take_word(line);
    CgroupMount mount{root + folder, inside.empty() ? "/" : inside, type == "cgroup2", {}};
    if (!mount.v2) mount.controllers = split(take_word(line), ',');
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

CgroupFolders find_cgroups(std::string_view cgroup_text, const std::vector<CgroupMount>& mounts) {
  CgroupFolders found;
  std::vector<std::string> unified;
  while (!cgroup_text.empty()) {
    const std::string_view line = take_line(cgroup_text);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const std::string path(line.substr(second + 1));
    for (const CgroupMount& mount : mounts) {
      if (controllers.empty()) {
        if (mount.v2 && unified.empty()) unified = folders_of(mount, path);
        continue;
      }
      if (mount.v2) continue;
      for (const std::string& name : split(controllers, ',')) {
        if (!has(mount.controllers, name)) continue;
        std::vector<std::string>* slot = name == "cpu"       ? &found.cpu
                                         : name == "cpuacct" ? &found.cpuacct
                                         : name == "memory"  ? &found.memory
                                         : name == "cpuset"  ? &found.cpuset
                                                             : nullptr;
        if (slot != nullptr && slot->empty()) *slot = folders_of(mount, path);
      }
    }
  }
  const auto unify = [&](std::vector<std::string>& folders, bool& v2, std::string_view file) {
    if (!folders.empty() || unified.empty()) return;
    if (file != "cpu.stat" && !any_has(unified, file)) return;
    folders = unified;
    v2 = true;
  };
  unify(found.cpu, found.cpu_v2, "cpu.stat");
  unify(found.memory, found.memory_v2, "memory.current");
  unify(found.cpuset, found.cpuset_v2, "cpuset.cpus.effective");
  return found;
}

std::optional<double> cpu_quota(const std::string& folder, bool v2) {
  std::optional<std::int64_t> quota;
  std::optional<std::int64_t> period;
  if (v2) {
    const std::string text = read_word(folder + "/cpu.max");
    std::string_view rest = text;
    quota = parse_number<std::int64_t>(take_word(rest));
    period = parse_number<std::int64_t>(take_word(rest));
  } else {
    quota = read_number(folder + "/cpu.cfs_quota_us");
    period = read_number(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<TightestQuota> tightest_cpu_quota(const std::vector<std::string>& folders, bool v2) {
  std::optional<TightestQuota> best;
  for (const std::string& folder : folders) {
    const auto cores = cpu_quota(folder, v2);
    if (cores && (!best || *cores < best->cores)) best = TightestQuota{folder, *cores};
  }
  return best;
}

std::optional<std::uint64_t> tightest_memory_limit(const std::vector<std::string>& folders, bool v2) {
  // Version 1 says "no limit" as the largest multiple of a page.
  constexpr std::uint64_t kNone = std::uint64_t{1} << 62;
  std::optional<std::uint64_t> best;
  for (const std::string& folder : folders) {
    const auto limit = parse_number<std::uint64_t>(read_word(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes")));
    if (limit && *limit < kNone && (!best || *limit < *best)) best = limit;
  }
  return best;
}

}  // namespace culprit::record
