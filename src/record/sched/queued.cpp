#include "record/sched/queued.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "record/collector/agent_name.h"

namespace culprit::record::sched {

namespace {

/// `folder`: of the thread. nullopt: it cannot run, or is gone.
std::optional<QueuedThread> read_queued(const std::string& folder) {
  const auto stat = read_beginning(folder + "/stat");
  if (!stat) return std::nullopt;
  const std::size_t begin = stat->find('(');
  const std::size_t end = stat->rfind(") ");  // names may have any character
  if (begin == std::string::npos || end == std::string::npos || end < begin || !stat->substr(end + 2).starts_with("R "))
    return std::nullopt;
  const std::string_view text = *stat;
  const auto tid = parse_number<std::int32_t>(text.substr(0, text.find(' ')));
  const std::string_view name = text.substr(begin + 1, end - begin - 1);
  const auto schedstat = read_beginning(folder + "/schedstat");
  const auto run_ns = schedstat
                          ? parse_number<std::uint64_t>(std::string_view(*schedstat).substr(0, schedstat->find(' ')))
                          : std::nullopt;
  if (!tid || !run_ns || name == kAgentName) return std::nullopt;
  return QueuedThread{.tid = *tid, .tgid = 0, .run_ns = *run_ns, .name = std::string(name)};
}

}  // namespace

std::vector<QueuedThread> queued_threads(std::int32_t pid, std::size_t most, const std::string& proc) {
  std::vector<QueuedThread> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("{}/{}/task", proc, pid), error), end;
       !error && entry != end && threads.size() < most; entry.increment(error))
    if (auto thread = read_queued(entry->path().string())) {
      thread->tgid = pid;
      threads.push_back(std::move(*thread));
    }
  return threads;
}

bool is_still_queued(const QueuedThread& thread, const std::string& proc) {
  const auto now = read_queued(fmt::format("{}/{}/task/{}", proc, thread.tgid, thread.tid));
  return now && now->run_ns == thread.run_ns;
}

}  // namespace culprit::record::sched
