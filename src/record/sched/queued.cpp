#include "record/sched/queued.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "record/collector/agent_name.h"
#include "record/sched/unseen.h"

namespace culprit::record::sched {

namespace {

/// nullopt: it cannot run, or is gone.
std::optional<QueuedThread> read_queued(std::int32_t tgid, std::int32_t tid, const std::string& proc) {
  const auto stat = read_beginning(fmt::format("{}/{}/task/{}/stat", proc, tgid, tid));
  if (!stat) return std::nullopt;
  const std::size_t begin = stat->find('(');
  const std::size_t end = stat->rfind(") ");  // names may have any character
  if (begin == std::string::npos || end == std::string::npos || end < begin || !stat->substr(end + 2).starts_with("R "))
    return std::nullopt;
  std::string name = stat->substr(begin + 1, end - begin - 1);
  const auto run_ns = read_run_ns(tgid, tid, proc);
  if (!run_ns || name == kAgentName) return std::nullopt;
  return QueuedThread{.tid = tid, .tgid = tgid, .run_ns = *run_ns, .name = std::move(name)};
}

}  // namespace

std::vector<QueuedThread> queued_threads(std::int32_t pid, std::size_t most, const std::string& proc) {
  std::vector<QueuedThread> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("{}/{}/task", proc, pid), error), end;
       !error && entry != end && threads.size() < most; entry.increment(error))
    if (const auto tid = parse_number<std::int32_t>(entry->path().filename().string()))
      if (auto thread = read_queued(pid, *tid, proc)) threads.push_back(std::move(*thread));
  return threads;
}

bool is_still_queued(const QueuedThread& thread, const std::string& proc) {
  const auto now = read_queued(thread.tgid, thread.tid, proc);
  return now && now->run_ns == thread.run_ns;
}

}  // namespace culprit::record::sched
