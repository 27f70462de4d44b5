#include "ab/freezer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "faults/cgroup.h"
#include "faults/files.h"

namespace culprit::ab {

namespace {

using faults::Undo;

constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kUntilNextRound = std::chrono::microseconds(100);
constexpr int kRounds = 20;  // of looking for processes that were started meanwhile

std::vector<pid_t> members(const std::string& folder) {
  std::vector<pid_t> pids;
  const auto text = read_file(folder + "/cgroup.procs");
  if (!text) return pids;
  for (const std::string_view line : split_lines(*text))
    if (const auto pid = parse_number<pid_t>(line)) pids.push_back(*pid);
  return pids;
}

bool stands_still(const FreezerGroup& group) {
  const auto text = read_file(group.version2 ? group.folder + "/cgroup.events" : group.file());
  if (!text) return false;
  return group.version2 ? text->find("frozen 1") != std::string::npos : text->starts_with("FROZEN");
}

/// Whether the condition came true in time.
template <class Condition>
bool wait_until(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(kUntilNextRound);
  }
  return true;
}

/// Asked behind the signal. In an uninterruptible wait a process runs nothing of its own and stops behind it: who waits
/// for a child of vfork that is stopped stays there.
bool is_stopped(pid_t pid) {
  const auto facts = faults::process_facts(pid);
  return !facts || std::string_view("TtDZX").find(facts->state) != std::string_view::npos;
}

}  // namespace

std::vector<FreezerGroup> freezer_groups_of(pid_t pid, const GroupFiles& files) {
  std::vector<FreezerGroup> found;
  const auto own = read_file(fmt::format("{}/{}/cgroup", files.proc, pid));
  const auto mounts = read_file(files.mounts);
  if (!own || !mounts) return found;
  for (const bool version2 : {true, false}) {
    std::string mount;
    for (const std::string_view line : split_lines(*mounts)) {
      const auto words = split_words(line);
      if (words.size() < 4 || words[2] != (version2 ? "cgroup2" : "cgroup")) continue;
      if (!version2 && (fmt::format(",{},", words[3])).find(",freezer,") == std::string::npos) continue;
      mount = words[1];
      break;
    }
    if (mount.empty()) continue;
    for (const std::string_view line : split_lines(*own)) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == std::string_view::npos || second == std::string_view::npos) continue;
      const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
      if (version2 ? !line.starts_with("0::") : controllers.find(",freezer,") == std::string::npos) continue;
      const std::string path(line.substr(second + 1));
      const std::string folder = path == "/" ? mount : mount + path;
      // A path outside of this namespace begins with /.. and names another group here.
      if (path.find("/..") == std::string::npos && access(folder.c_str(), W_OK) == 0)
        found.push_back({version2, folder});
      break;
    }
  }
  return found;
}

Status runs(faults::ProcessId root) {
  for (const faults::ProcessId& process : faults::process_tree(root)) {
    const auto facts = faults::process_facts(process.pid);
    if (facts && (facts->state == 'T' || facts->state == 't'))
      return environment_error("is stopped already, so it could not be left as it was",
                               fmt::format("process {}", process.pid), "continue it first, or end its debugger");
    for (const FreezerGroup& group : freezer_groups_of(process.pid))
      if (stands_still(group))
        return environment_error("stands still already: its control group is frozen",
                                 fmt::format("process {}", process.pid), fmt::format("thaw {} first", group.folder));
  }
  return {};
}

Result<Freezer> Freezer::take(faults::ProcessId root, const std::string& name, faults::Guard& guard, bool groups) {
  auto handle = faults::ProcessHandle::open(root);
  if (!handle) return environment_error("has ended", fmt::format("process {}", root.pid));
  if (Status status = runs(root); !status) return status.error();
  Freezer freezer(std::move(*handle), guard);
  if (groups)
    for (const FreezerGroup& origin : freezer_groups_of(root.pid)) {
      if (!guard.alive()) break;
      if (freezer.enter(origin, name)) return freezer;
    }
  freezer.group_ = {};
  if (const auto news = freezer.learn(); !news) return news.error();
  return freezer;
}

/// Makes a group below `origin` and moves everybody there.
Status Freezer::enter(const FreezerGroup& origin, const std::string& name) {
  // Whoever is in another group has limits there, which moving would lift.
  for (const faults::ProcessId& process : faults::process_tree(root_.id())) {
    const auto groups = freezer_groups_of(process.pid);
    const auto facts = faults::process_facts(process.pid);
    const bool there = std::ranges::any_of(
        groups, [&](const FreezerGroup& g) { return g.version2 == origin.version2 && g.folder == origin.folder; });
    if (!there && facts && facts->state != 'Z')
      return environment_error("is in another control group than the process that started it",
                               fmt::format("process {}", process.pid));
  }
  const FreezerGroup own{origin.version2, fmt::format("{}/{}", origin.folder, name)};
  // Undone in reverse: thawed first, then moved back.
  if (Status status = guard_->add({Undo::Kind::leave_cgroup, {own.folder, origin.folder}}); !status) return status;
  if (mkdir(own.folder.c_str(), 0755) != 0)
    return environment_error(fmt::format("no group can be made: {}", errno_text(errno)), own.folder);
  // A group of the root has the file where the kernel has a freezer.
  if (access(own.file().c_str(), W_OK) != 0) {
    rmdir(own.folder.c_str());
    return environment_error("the kernel has no freezer there", own.folder);
  }
  if (Status status = guard_->add({Undo::Kind::write_file, {own.file(), std::string(own.thawed())}}); !status)
    return status;
  const auto back = [&] { static_cast<void>(faults::leave_cgroup(own.folder, origin.folder)); };
  for (int round = 0; round < kRounds; ++round) {
    bool moved = false;
    std::vector<pid_t> inside = members(own.folder);
    for (const faults::ProcessId& process : faults::process_tree(root_.id())) {
      if (std::ranges::find(inside, process.pid) != inside.end()) continue;
      Status status = faults::write_small_file(own.folder + "/cgroup.procs", fmt::format("{}", process.pid));
      if (status) {
        moved = true;
      } else if (const auto facts = faults::process_facts(process.pid); facts && facts->state != 'Z') {
        back();
        return status;
      }
    }
    if (!moved) {
      group_ = own;
      return {};
    }
  }
  back();
  return environment_error("starts processes faster than they can be moved", fmt::format("process {}", root_.id().pid));
}

/// By signals: tells the guard of processes that are new; gives how many.
Result<std::size_t> Freezer::learn() {
  std::size_t news = 0;
  std::erase_if(known_, [](const auto& entry) { return entry.second.ended(); });
  std::vector<faults::ProcessId> roots = {root_.id()};
  for (const auto& [pid, handle] : known_) roots.push_back(handle.id());
  std::set<pid_t> seen;
  for (const faults::ProcessId& root : roots) {
    if (seen.contains(root.pid)) continue;  // in the tree of another one
    for (const faults::ProcessId& process : faults::process_tree(root)) {
      seen.insert(process.pid);
      if (known_.contains(process.pid)) continue;
      auto handle = faults::ProcessHandle::open(process);
      if (!handle) continue;
      if (Status status = guard_->add(
              {Undo::Kind::continue_process, {fmt::format("{}", process.pid), fmt::format("{}", process.start)}});
          !status)
        return status.error();
      known_.insert_or_assign(process.pid, std::move(*handle));
      ++news;
    }
  }
  return news;
}

/// Who ends a side may remove its control group with it.
bool Freezer::nobody_is_left() const {
  return (access(group_.folder.c_str(), F_OK) != 0 && errno == ENOENT) || (over() && members(group_.folder).empty());
}

Status Freezer::freeze() {
  if (!group_.folder.empty()) {
    if (Status status = faults::write_small_file(group_.file(), group_.frozen()); !status)
      return nobody_is_left() ? Status() : status;
    if (wait_until([&] { return stands_still(group_) || nobody_is_left(); })) return {};
    return environment_error("not all processes stand still", group_.folder,
                             "one of them may be in a call that cannot be interrupted");
  }
  for (int round = 0; round < kRounds; ++round) {
    const auto news = learn();
    if (!news) return news.error();
    if (round > 0 && *news == 0) {
      const bool all = wait_until(
          [&] { return std::ranges::all_of(known_, [](const auto& entry) { return is_stopped(entry.first); }); });
      if (!all) break;
      // Whoever was forking when its signal came has done so by now.
      const auto late = learn();
      if (!late) return late.error();
      if (*late == 0) return {};
    }
    for (const auto& [pid, handle] : known_)
      if (!handle.signal(SIGSTOP) && errno != ESRCH)
        return environment_error("cannot be stopped: operation not permitted", fmt::format("process {}", pid));
  }
  return environment_error("not all processes stand still", fmt::format("process {}", root_.id().pid));
}

Status Freezer::thaw() {
  if (!group_.folder.empty()) {
    Status status = faults::write_small_file(group_.file(), group_.thawed());
    return status || nobody_is_left() ? Status() : status;
  }
  for (const auto& [pid, handle] : known_)
    if (!handle.signal(SIGCONT) && errno != ESRCH)
      return environment_error("cannot be continued: operation not permitted", fmt::format("process {}", pid));
  return {};
}

std::string Freezer::how() const {
  if (group_.folder.empty()) return "SIGSTOP";
  return group_.version2 ? "freezer of a control group, version 2" : "freezer of a control group, version 1";
}

std::vector<faults::ProcessId> Freezer::processes() const {
  std::vector<faults::ProcessId> all;
  if (group_.folder.empty()) {
    for (const auto& [pid, handle] : known_)
      if (!handle.ended()) all.push_back(handle.id());
    return all;
  }
  for (const pid_t pid : members(group_.folder))
    if (const auto facts = faults::process_facts(pid)) all.push_back(facts->id);
  return all;
}

}  // namespace culprit::ab
