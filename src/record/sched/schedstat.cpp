#include "record/sched/schedstat.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "core/file.h"
#include "record/collector/agent_name.h"

namespace culprit::record::sched {

namespace {

std::optional<std::int64_t> number(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::int64_t> field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  return number(text);
}

/// Threads of a process in the order of their ids.
std::vector<std::int64_t> threads_of(std::int64_t pid) {
  std::vector<std::int64_t> tids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", pid), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::string_view text = name;
    if (const auto tid = number(text)) tids.push_back(*tid);
  }
  std::ranges::sort(tids);
  return tids;
}

}  // namespace

bool is_agent(std::string_view status) { return status.starts_with("Name:\t" + kAgentName + "\n"); }

std::optional<ThreadTotals> parse_totals(std::string_view schedstat, std::string_view status) {
  const auto oncpu = number(schedstat);
  const auto runq = oncpu ? number(schedstat) : std::nullopt;
  const auto voluntary = field(status, "\nvoluntary_ctxt_switches:");
  const auto involuntary = field(status, "\nnonvoluntary_ctxt_switches:");
  if (!runq || !voluntary || !involuntary) return std::nullopt;
  return ThreadTotals{*oncpu, *runq, *voluntary, *involuntary};
}

Status Schedstat::start(Session& session) {
  if (!read_beginning("/proc/self/schedstat"))
    return environment_error("the kernel keeps no totals of scheduling", "/proc/self/schedstat",
                             "needs a kernel with CONFIG_SCHED_INFO, and /proc");
  started_ = true;
  session.writer.metadata("sched.source", "schedstat");
  return {};
}

std::vector<Sight> Schedstat::sights() const {
  return {{"totals per thread: time on a CPU, in the run queue, switches", started_,
           started_ ? "" : "the kernel keeps none", started_ ? "" : "a kernel with CONFIG_SCHED_INFO"}};
}

void Schedstat::sample(Session& session, Ns now) {
  ++round_;
  for (const Target& target : session.targets) {
    for (const std::int64_t tid : threads_of(target.pid)) {
      const std::string folder = fmt::format("/proc/{}/task/{}/", target.pid, tid);
      const auto schedstat = read_beginning(folder + "schedstat");
      const auto status = read_beginning(folder + "status");
      if (!schedstat || !status) continue;  // ended meanwhile
      if (is_agent(*status)) continue;
      const auto totals = parse_totals(*schedstat, *status);
      if (!totals) {
        ++stats_.dropped;
        continue;
      }
      const auto [found, is_new] = tracks_.try_emplace({target.pid, tid});
      if (is_new) {
        const auto track = [&](std::string_view what, std::string_view unit) {
          return session.writer.counter_track(fmt::format("sched.{} {}", what, tid), unit, target.pid);
        };
        found->second = {track("oncpu", "ns"), track("runq", "ns"), track("switches_voluntary", "count"),
                         track("switches_involuntary", "count"), round_};
      }
      found->second.round = round_;
      session.writer.counter(found->second.oncpu, now, static_cast<double>(totals->oncpu_ns));
      session.writer.counter(found->second.runq, now, static_cast<double>(totals->runq_ns));
      session.writer.counter(found->second.voluntary, now, static_cast<double>(totals->voluntary));
      session.writer.counter(found->second.involuntary, now, static_cast<double>(totals->involuntary));
      stats_.events += 4;
    }
  }
  std::erase_if(tracks_, [&](const auto& entry) { return entry.second.round != round_; });
}

void Schedstat::poll(Session& session, Ns now) {
  constexpr Ns kDeep = 100'000'000;
  constexpr Ns kWatch = 1'000'000'000;
  if (!started_ || stopped_ || now < next_) return;
  constexpr Ns kShare = 10;
  sample(session, now);
  next_ = now + std::max(session.preset == Preset::deep ? kDeep : kWatch, kShare * (monotonic_now() - now));
}

void Schedstat::stop(Session& session, Ns now) {
  if (!started_ || stopped_) return;
  stopped_ = true;
  sample(session, now);
}

}  // namespace culprit::record::sched
