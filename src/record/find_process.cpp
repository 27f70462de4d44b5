#include "record/find_process.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "core/text.h"
#include "record/targets.h"

namespace culprit::record {

namespace {

using Parents = std::unordered_map<std::int64_t, std::int64_t>;

/// Calls `use` for every process that `pid` descends from, the nearest first, until it returns false.
template <class Use>
void each_ancestor(const Parents& parents, std::int64_t pid, Use&& use) {
  // A pid that was reused while /proc was read could make a ring.
  std::size_t left = parents.size();
  for (auto at = parents.find(pid); at != parents.end() && left > 0; at = parents.find(at->second), --left)
    if (!use(at->second)) return;
}

using Names = std::array<std::string_view, 4>;
Names names_of(const FoundProcess& process) {
  return {process.names.comm, process.names.title, short_title(process.names), process.names.program};
}

}  // namespace

std::vector<FoundProcess> list_processes(const std::string& proc, std::int64_t own_pid) {
  const Targets view(proc, own_pid);
  std::vector<FoundProcess> all;
  Parents parents;
  for (const std::int64_t pid : view.all_pids()) {
    const auto stat = view.stat(pid);
    if (!stat || has_ended(*stat)) continue;
    parents.emplace(pid, stat->parent);
    if (stat->kernel_thread) continue;
    struct stat folder {};
    const bool known = ::stat(fmt::format("{}/{}", proc, pid).c_str(), &folder) == 0;
    all.push_back({pid, stat->parent, stat->start_ticks, known ? folder.st_uid : 0, read_process_names(proc, pid)});
  }
  std::unordered_set<std::int64_t> own{own_pid};
  each_ancestor(parents, own_pid, [&](std::int64_t pid) { return own.insert(pid).second; });
  std::erase_if(all, [&](const FoundProcess& process) { return own.contains(process.pid); });
  return all;
}

std::vector<FoundProcess> match_processes(const std::vector<FoundProcess>& all, std::string_view name) {
  if (name.empty()) return {};
  const std::string lower = to_lower(name);
  const std::array<std::function<bool(std::string_view)>, 3> rules = {
      [&](std::string_view known) { return known == name; },
      [&](std::string_view known) { return known.starts_with(name); },
      [&](std::string_view known) { return contains_ignoring_case(known, lower); }};
  std::vector<FoundProcess> matched;
  for (const auto& rule : rules) {
    std::ranges::copy_if(all, std::back_inserter(matched),
                         [&](const FoundProcess& process) { return std::ranges::any_of(names_of(process), rule); });
    if (!matched.empty()) break;
  }
  return matched;
}

std::vector<FoundProcess> eldest(const std::vector<FoundProcess>& matched, const std::vector<FoundProcess>& all) {
  Parents parents;
  for (const FoundProcess& process : all) parents.emplace(process.pid, process.parent);
  std::unordered_set<std::int64_t> chosen;
  for (const FoundProcess& process : matched) chosen.insert(process.pid);
  std::vector<FoundProcess> roots;
  for (const FoundProcess& process : matched) {
    bool descends = false;
    each_ancestor(parents, process.pid, [&](std::int64_t pid) {
      descends = pid != process.pid && chosen.contains(pid);
      return !descends;
    });
    if (!descends) roots.push_back(process);
  }
  return roots;
}

bool is_family(const std::vector<FoundProcess>& roots) {
  if (roots.size() == 1) return true;
  const auto same = [&](const FoundProcess& process) { return process.parent == roots.front().parent; };
  return !roots.empty() && roots.front().parent > 1 && std::ranges::all_of(roots, same);
}

}  // namespace culprit::record
