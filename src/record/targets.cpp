#include "record/targets.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>

#include "core/file.h"
#include "record/collector/agent_name.h"
#include "record/process_group.h"

namespace culprit::record {

namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Names of a folder that are numbers, sorted.
std::vector<std::int64_t> numbers_in(const std::string& folder) {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto value = number(entry->path().filename().string())) found.push_back(*value);
  std::ranges::sort(found);
  return found;
}

}  // namespace

bool has_ended(const ProcessStat& stat) { return stat.state == 'X' || (stat.state == 'Z' && stat.threads < 2); }

std::optional<ProcessStat> parse_stat(std::string_view text) {
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) return std::nullopt;
  const auto pid = number(text.substr(0, open));
  if (!pid || *pid <= 0) return std::nullopt;
  ProcessStat stat;
  stat.pid = *pid;
  stat.name = text.substr(open + 2, close - open - 2);
  std::istringstream rest{std::string(text.substr(close + 2))};
  rest >> stat.state >> stat.parent;
  std::string skipped;
  for (int field = 5; field < 9; ++field) rest >> skipped;
  std::uint64_t flags = 0;
  rest >> flags;
  constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD of the kernel
  stat.kernel_thread = (flags & kKernelThread) != 0;
  for (int field = 10; field < 20; ++field) rest >> skipped;
  rest >> stat.threads >> skipped >> stat.start_ticks;
  if (!rest || stat.parent < 0 || stat.start_ticks < 0) return std::nullopt;
  return stat;
}

Targets::Targets(std::string proc, std::int64_t own_pid, std::size_t most)
    : proc_(std::move(proc)), own_pid_(own_pid < 0 ? getpid() : own_pid), most_(most) {}

std::vector<std::int64_t> Targets::all_pids() const { return numbers_in(proc_); }

std::optional<ProcessStat> Targets::stat(std::int64_t pid) const {
  const auto text = read_beginning(fmt::format("{}/{}/stat", proc_, pid));
  return text ? parse_stat(*text) : std::nullopt;
}

std::vector<std::pair<std::int64_t, std::string>> Targets::threads(std::int64_t pid) const {
  std::vector<std::pair<std::int64_t, std::string>> threads;
  const std::string folder = fmt::format("{}/{}/task", proc_, pid);
  for (const std::int64_t tid : numbers_in(folder)) {
    auto name = read_beginning(fmt::format("{}/{}/comm", folder, tid));
    if (!name) continue;
    if (!name->empty() && name->back() == '\n') name->pop_back();
    if (*name == kAgentName) continue;
    threads.emplace_back(tid, std::move(*name));
  }
  return threads;
}

bool Targets::exists(std::int64_t pid) const {
  std::error_code error;
  return std::filesystem::exists(fmt::format("{}/{}", proc_, pid), error);
}

std::optional<std::int64_t> Targets::process_of(std::int64_t tid) const {
  constexpr std::string_view kKey = "\nTgid:\t";
  const auto text = read_beginning(fmt::format("{}/{}/status", proc_, tid));
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(at + kKey.size());
  return number(rest.substr(0, rest.find('\n')));
}

bool Targets::join(const ProcessStat& stat) {
  if (list_.size() >= most_) return false;
  const Target target{stat.pid, stat.start_ticks};
  list_.push_back(target);
  pids_.insert(stat.pid);
  joined_.push_back(target);
  return true;
}

Status Targets::add(std::int64_t pid) {
  const std::string where = fmt::format("process {}", pid);
  const auto found = stat(pid);
  if (!found) return input_error("no such process", where, "see 'ps -e' for what runs");
  if (has_ended(*found)) return input_error("it has ended already", where);
  if (pid == own_pid_) return usage_error("the recorder cannot record itself");
  if (const auto leader = process_of(pid); leader && *leader != pid)
    return input_error(fmt::format("is a thread of process {}", *leader), where, fmt::format("give -p {}", *leader));
  if (found->kernel_thread)
    return usage_error(fmt::format("process {} is a thread of the kernel", pid), "name a process of a user");
  if (!contains(pid) && !join(*found))
    return usage_error(fmt::format("more than {} processes", most_), "name fewer of them");
  strangers_.clear();  // some may descend from it
  add_descendants();
  return {};
}

void Targets::add_all() {
  whole_machine_ = true;
  strangers_.clear();
  look_around();
}

void Targets::add_group(const std::string& folder) {
  group_ = folder;
  look_around();
}

bool Targets::add_child(std::int64_t pid) {
  if (pid == own_pid_ || contains(pid)) return false;
  const auto found = stat(pid);
  if (!found || has_ended(*found)) return false;
  if (join(*found)) return true;
  ++left_out_;
  return false;
}

void Targets::add_descendants() {
  constexpr unsigned kForgets = 16;
  if (++looks_ % kForgets == 0) strangers_.clear();
  std::vector<ProcessStat> all;
  std::vector<std::int64_t> strangers;
  for (const std::int64_t pid : numbers_in(proc_))
    if (std::ranges::binary_search(strangers_, pid))
      strangers.push_back(pid);
    else if (auto found = stat(pid); found && !has_ended(*found))
      all.push_back(std::move(*found));
  std::uint64_t refused = 0;
  const auto wanted = [&](const ProcessStat& process) {
    if (process.pid == own_pid_ || process.kernel_thread || contains(process.pid)) return false;
    return whole_machine_ || contains(process.parent);
  };
  // A child may have a lower pid than its parent, so until nothing is found.
  for (bool more = true; more;) {
    more = false;
    refused = 0;
    for (const ProcessStat& process : all) {
      if (!wanted(process)) continue;
      if (join(process))
        more = !whole_machine_;
      else
        ++refused;
    }
  }
  left_out_ = std::max(left_out_, refused);
  strangers_.clear();
  if (refused > 0) return;  // who descends from those may come in with them
  for (const ProcessStat& process : all)
    if (!contains(process.pid) && !wanted(process)) strangers.push_back(process.pid);
  std::ranges::sort(strangers);
  strangers_ = std::move(strangers);
}

void Targets::look_around() {
  if (group_.empty()) return add_descendants();  // those of a group are in it
  std::uint64_t refused = 0;
  for (const std::int64_t pid : group_processes(group_)) {
    if (pid == own_pid_ || contains(pid)) continue;
    const auto found = stat(pid);
    if (found && !has_ended(*found) && !found->kernel_thread && !join(*found)) ++refused;
  }
  left_out_ = std::max(left_out_, refused);
}

bool Targets::still_runs(const Target& target) const {
  const auto found = stat(target.pid);
  // What cannot be read (too many open files) has not ended while its folder is there.
  return found ? found->start_ticks == target.start_ticks && !has_ended(*found) : exists(target.pid);
}

void Targets::refresh(bool look_for_more) {
  std::vector<Target> stay;
  for (const Target& target : list_) {
    const bool stays = still_runs(target);
    (stays ? stay : left_).push_back(target);
    if (!stays) pids_.erase(target.pid);
  }
  list_ = std::move(stay);
  if (look_for_more) look_around();
}

bool Targets::drop_if_ended(std::int64_t pid) {
  const auto target = std::ranges::find(list_, pid, &Target::pid);
  if (target == list_.end()) return true;
  if (still_runs(*target)) return false;
  left_.push_back(*target);
  pids_.erase(pid);
  list_.erase(target);
  return true;
}

bool Targets::over() const {
  if (whole_machine_ || !list_.empty()) return false;
  std::error_code error;
  return group_.empty() || !std::filesystem::exists(group_, error);
}

std::vector<Target> Targets::take_joined() { return std::exchange(joined_, {}); }
std::vector<Target> Targets::take_left() { return std::exchange(left_, {}); }

}  // namespace culprit::record
