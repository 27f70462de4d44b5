#include "ab/family.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "core/text.h"
#include "record/collector/collector.h"

namespace culprit::ab {

namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
constexpr int kKills = 40;  // looks for who was started while the others were killed

std::vector<faults::ProcessId> members_of(const std::vector<pid_t>& groups) {
  std::vector<faults::ProcessId> found;
  if (groups.empty()) return found;
  std::error_code code;
  for (std::filesystem::directory_iterator entry("/proc", code), end; !code && entry != end; entry.increment(code)) {
    const auto pid = parse_number<pid_t>(entry->path().filename().string());
    if (!pid || std::ranges::find(groups, getpgid(*pid)) == groups.end()) continue;
    const auto facts = faults::process_facts(*pid);
    if (facts && facts->state != 'Z' && facts->state != 'X') found.push_back(facts->id);
  }
  return found;
}

void send(const faults::ProcessId& process, int number) {
  if (const auto handle = faults::ProcessHandle::open(process)) static_cast<void>(handle->signal(number));
}

}  // namespace

std::vector<faults::ProcessId> living(const std::vector<faults::ProcessId>& known, const std::vector<pid_t>& groups) {
  std::vector<faults::ProcessId> roots = known;
  std::ranges::copy(members_of(groups), std::back_inserter(roots));
  std::set<pid_t> seen;
  std::vector<faults::ProcessId> found;
  for (const faults::ProcessId& root : roots) {
    if (seen.contains(root.pid)) continue;
    for (const faults::ProcessId& process : faults::process_tree(root))
      if (seen.insert(process.pid).second) found.push_back(process);
  }
  return found;
}

void end_family(std::vector<faults::ProcessId> known, const std::vector<pid_t>& groups, Ns grace) {
  const Ns limit = record::monotonic_now() + grace;
  std::set<pid_t> asked;
  for (known = living(known, groups); !known.empty(); known = living(known, groups)) {
    for (const faults::ProcessId& process : known)
      if (asked.insert(process.pid).second) send(process, SIGTERM);
    if (record::monotonic_now() > limit) break;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  for (int look = 0; look < kKills && !known.empty(); ++look) {
    for (const faults::ProcessId& process : known) send(process, SIGKILL);
    std::this_thread::sleep_for(kBetweenLooks);
    known = living(known, groups);
  }
}

}  // namespace culprit::ab
