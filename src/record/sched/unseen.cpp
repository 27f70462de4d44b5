#include "record/sched/unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "record/sched/stopped.h"

namespace culprit::record::sched {

namespace {

constexpr int kFirstBehindName = 3;
constexpr double kMost = 0.7;  // of the time; what a running thread ran is counted up at ticks

/// The n-th word, from 0.
std::string_view word(std::string_view text, int n) {
  for (; n > 0; --n) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find(' '));
}

}  // namespace

std::optional<std::uint64_t> read_run_ns(std::int32_t tgid, std::int32_t tid, const std::string& proc) {
  const auto schedstat = read_beginning(fmt::format("{}/{}/task/{}/schedstat", proc, tgid, tid));
  return schedstat ? parse_number<std::uint64_t>(word(*schedstat, 0)) : std::nullopt;
}

std::optional<std::uint32_t> read_last_cpu(std::int32_t tgid, std::int32_t tid) {
  const auto stat = read_beginning(fmt::format("/proc/{}/task/{}/stat", tgid, tid));
  const std::size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  return parse_number<std::uint32_t>(
      word(std::string_view(*stat).substr(name_end + 2), kProcessorField - kFirstBehindName));
}

void UnseenRuns::waits(std::int32_t tid, std::int32_t tgid, Ns at) {
  const Thread thread{.tgid = tgid, .waits = true, .since = at, .run_ns = {}, .looked = 0, .found = {}};
  if (const auto known = threads_.find(tid); known != threads_.end())
    known->second = thread;
  else if (threads_.size() < kMostThreads)
    threads_.emplace(tid, thread);
}

void UnseenRuns::seen(std::int32_t tid) {
  if (const auto known = threads_.find(tid); known != threads_.end()) known->second.waits = false;
}

std::vector<UnseenRun> UnseenRuns::look(Ns now) {
  std::vector<UnseenRun> runs;
  std::vector<std::pair<Ns, std::int32_t>> due;  // when each was asked for last
  for (auto& [tid, thread] : threads_) {
    if (thread.waits && thread.found) {
      runs.push_back(*thread.found);
      thread.waits = false;
    }
    if (thread.waits && now - thread.since >= kPatience) due.emplace_back(thread.looked, tid);
  }
  const std::size_t asked = std::min(due.size(), kMostAsked);
  std::ranges::partial_sort(due, due.begin() + static_cast<std::ptrdiff_t>(asked));
  for (const auto& [looked, tid] : std::span(due).first(asked)) {
    Thread& thread = threads_.at(tid);
    const std::optional<std::uint64_t> run_ns = read_(thread.tgid, tid);
    if (!run_ns) {
      threads_.erase(tid);
      continue;
    }
    if (thread.run_ns && *run_ns > *thread.run_ns) {
      const bool all_along =
          kMost * static_cast<double>(now - thread.looked) < static_cast<double>(*run_ns - *thread.run_ns);
      thread.found = UnseenRun{tid, thread.tgid, all_along ? thread.looked : now};
    }
    thread.run_ns = run_ns;
    thread.looked = now;
  }
  return runs;
}

}  // namespace culprit::record::sched
