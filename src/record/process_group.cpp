#include "record/process_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "core/file.h"
#include "core/text.h"
#include "record/collector/cgroups.h"
#include "record/targets.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostGroups = 4096;
constexpr std::size_t kMostContainersNamed = 5;

bool is_group(const std::string& folder) { return access((folder + "/cgroup.procs").c_str(), F_OK) == 0; }

/// The part of a group's name that tells the container: "docker-ID.scope", "kubepods-...:cri-containerd:ID".
std::string_view container_part(std::string_view name) {
  if (contains(name, "conmon")) return {};  // podman's watcher of a container, beside it
  if (name.ends_with(".scope")) name.remove_suffix(std::string_view(".scope").size());
  for (const std::string_view known :
       {"docker-", "cri-containerd-", "nerdctl-", "libpod-", "crio-", "lxc.payload.", "machine-"})
    if (name.starts_with(known)) return name.substr(known.size());
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

bool is_id(std::string_view text) {
  constexpr std::size_t kId = 64;
  return text.size() == kId && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The container with that name or begin of an id that the path of a group lies in, and the path up to there.
std::pair<std::string, std::string> container_of(std::string_view path, std::string_view name) {
  for (std::size_t begin = 1; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = container_part(path.substr(begin, end - begin));
    if (part == name || (is_id(part) && part.starts_with(name)))
      return {std::string(part), std::string(path.substr(0, end))};
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<std::string> find_group(const std::string& path, const std::string& root) {
  const Error none = input_error("no such control group", path, "'cat /proc/PID/cgroup' names those of a process");
  if (contains("/" + path + "/", "/../") || path.empty()) return none;
  if (path.starts_with('/') && is_group(root + path)) return root + path;
  auto mounts = parse_cgroup_mounts(read_beginning(root + "/proc/self/mountinfo").value_or(""), root);
  std::ranges::stable_sort(mounts, [](const auto& a, const auto& b) { return a.v2 && !b.v2; });
  for (const CgroupMount& mount : mounts) {
    std::string_view below = path;
    if (mount.inside != "/" && below.starts_with(mount.inside)) below.remove_prefix(mount.inside.size());
    const std::string folder = fmt::format("{}{}{}", mount.folder, below.starts_with('/') ? "" : "/", below);
    if (is_group(folder)) return folder;
  }
  return none;
}

Result<std::string> find_container(const std::string& name, const std::string& root) {
  const Targets view(root + "/proc");
  std::map<std::string, std::set<std::string>> containers;  // with the paths of their groups
  if (!name.empty()) {
    for (const std::int64_t pid : view.all_pids()) {
      const std::string text = read_beginning(fmt::format("{}/proc/{}/cgroup", root, pid)).value_or("");
      for (const std::string_view line : split_lines(text)) {
        const std::size_t colon = line.find(':');
        const std::size_t path = colon == std::string_view::npos ? colon : line.find(':', colon + 1);
        if (path == std::string_view::npos) continue;
        if (auto [id, group] = container_of(line.substr(path + 1), name); !id.empty())
          containers[id].insert(std::move(group));
      }
    }
  }
  if (containers.empty())
    return input_error("no such container", name,
                       "give its id or the begin of it ('docker ps', 'podman ps' or 'crictl ps' show ids), or the name "
                       "of one of LXC or systemd-nspawn");
  if (containers.size() > 1) {
    std::vector<std::string> ids;
    for (const auto& [id, groups] : containers)
      if (ids.size() < kMostContainersNamed) ids.push_back(id);
    return usage_error(fmt::format("'{}' begins the ids of {} containers: {}{}", name, containers.size(),
                                   fmt::join(ids, ", "), ids.size() < containers.size() ? ", ..." : ""),
                       "give more of the id");
  }
  for (const std::string& group : containers.begin()->second)
    if (auto folder = find_group(group, root)) return folder;
  return environment_error("the control group of the container is not mounted here", name,
                           "record from the host, or give -p PID");
}

std::vector<std::int64_t> group_processes(const std::string& folder) {
  std::vector<std::int64_t> pids;
  std::vector<std::string> folders{folder};
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::string text = read_beginning(folders[i] + "/cgroup.procs").value_or("");
    for (const std::string_view line : split_lines(text))
      if (const auto pid = parse_number<std::int64_t>(line); pid && *pid > 0) pids.push_back(*pid);
    std::error_code error;
    const std::string parent = folders[i];
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
      if (folders.size() < kMostGroups && entry->is_directory(error) && !entry->is_symlink(error))
        folders.push_back(entry->path().string());
  }
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace culprit::record
