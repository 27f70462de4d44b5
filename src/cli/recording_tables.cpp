#include "cli/recording_tables.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/units.h"
#include "cycles/waits.h"
#include "model/table_rows.h"

namespace culprit::cli {

namespace {

using model::ColumnType;

constexpr std::size_t kShownPeers = 3;

/// Keys of the facts by what they are about.
struct Section {
  std::string_view title;
  std::string_view key;
  std::vector<std::string_view> prefixes;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"Environment", "environment", {"env.", "library.", "system.", "process."}},
      {"What could not be seen", "missing", {"missing."}},
      {"The recorder: options, cost and losses", "recorder", {"record.", "cost.", "clock."}},
      {"Other facts", "facts", {""}},
  };
  return kSections;
}

std::size_t section_of(std::string_view key) {
  const auto& all = sections();
  const auto it = std::ranges::find_if(all, [&](const Section& section) {
    return std::ranges::any_of(section.prefixes, [&](std::string_view prefix) { return key.starts_with(prefix); });
  });
  return static_cast<std::size_t>(it - all.begin());
}

std::string reasons_text(const model::ThreadSchedInfo& thread) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [name, sum] : thread.blocked_in) {
    if (shown++ == kShownPeers) break;
    const std::string_view reason = cycles::blocked_call(name);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, format_duration(sum.sum));
  }
  return text;
}

std::string peers_text(const std::vector<model::PeerInfo>& peers, bool time) {
  std::string text;
  for (std::size_t i = 0; i < std::min(peers.size(), kShownPeers); ++i) {
    const model::PeerInfo& peer = peers[i];
    text += fmt::format("{}{}", text.empty() ? "" : ", ", peer.name);
    if (peer.tid != 0) text += fmt::format(" ({})", peer.tid);
    text += time ? fmt::format(" {}", format_duration(peer.time)) : fmt::format(" {}x", peer.count);
  }
  return text;
}

}  // namespace

std::vector<model::Table> metadata_tables(const model::TraceInfo& info) {
  struct Row {
    const std::string& path;
    const std::string& key;
    const std::string& value;
  };
  std::vector<std::vector<Row>> rows(sections().size());
  for (const model::RankInfo& rank : info.ranks)
    for (const auto& [key, value] : rank.metadata) rows[section_of(key)].push_back({rank.path, key, value});
  std::vector<model::Table> tables;
  for (std::size_t s = 0; s < rows.size(); ++s) {
    if (rows[s].empty()) continue;
    tables.push_back(
        model::make_table<Row>(std::string(sections()[s].title), std::string(sections()[s].key),
                               {{{"File", "path", ColumnType::name},
                                 [](const Row& row) { return row.path; },
                                 model::present_if(info.ranks.size() > 1)},
                                {{"What", "key", ColumnType::name}, [](const Row& row) { return row.key; }},
                                {{"Value", "value", ColumnType::name}, [](const Row& row) { return row.value; }}},
                               rows[s]));
  }
  return tables;
}

model::Table process_sched_table(const model::TraceInfo& info) {
  struct Sum {
    model::ThreadSchedInfo total;
    std::int64_t threads = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Sum> by_process;
  for (const model::ThreadSchedInfo& thread : info.sched) {
    Sum& sum = by_process[{thread.rank, thread.pid}];
    sum.total.process = thread.process;
    sum.total.pid = thread.pid;
    sum.total.on_cpu += thread.on_cpu;
    sum.total.run_queue += thread.run_queue;
    sum.total.blocked += thread.blocked;
    sum.total.switches += thread.switches;
    sum.total.preemptions += thread.preemptions;
    sum.total.migrations += thread.migrations;
    ++sum.threads;
  }
  std::vector<Sum> sums;
  sums.reserve(by_process.size());
  for (auto& [process, sum] : by_process) sums.push_back(std::move(sum));
  return model::make_table<Sum>(
      "Scheduling of processes (sums over their threads)", "sched_processes",
      {{{"Process", "process", ColumnType::name}, [](const Sum& sum) { return sum.total.process; }},
       {{"Pid", "pid", ColumnType::count}, [](const Sum& sum) { return sum.total.pid; }},
       {{"Threads", "threads", ColumnType::count}, &Sum::threads},
       {{"On CPU", "on_cpu_ns", ColumnType::time}, [](const Sum& sum) { return sum.total.on_cpu; }},
       {{"Run queue", "run_queue_ns", ColumnType::time}, [](const Sum& sum) { return sum.total.run_queue; }},
       {{"Blocked", "blocked_ns", ColumnType::time}, [](const Sum& sum) { return sum.total.blocked; }},
       {{"Switches", "switches", ColumnType::count}, [](const Sum& sum) { return sum.total.switches; }},
       {{"Preempted", "preemptions", ColumnType::count, 3, true}, [](const Sum& sum) { return sum.total.preemptions; }},
       {{"Migrations", "migrations", ColumnType::count, 3, true}, [](const Sum& sum) { return sum.total.migrations; }}},
      sums);
}

model::Table thread_sched_table(const model::TraceInfo& info, std::size_t most, PeersAs peers) {
  using Thread = model::ThreadSchedInfo;
  const auto as_text = model::present_if(peers == PeersAs::text);
  model::Table table = model::make_table<Thread>(
      "Scheduling of threads", "sched_threads",
      {{{"Thread", "thread", ColumnType::name}, &Thread::thread},
       {{"Pid", "pid", ColumnType::count}, &Thread::pid},
       {{"Tid", "tid", ColumnType::count}, &Thread::tid},
       {{"On CPU", "on_cpu_ns", ColumnType::time}, &Thread::on_cpu},
       {{"Run queue", "run_queue_ns", ColumnType::time}, &Thread::run_queue},
       {{"Blocked", "blocked_ns", ColumnType::time}, &Thread::blocked},
       {{"Uninterruptible", "uninterruptible_ns", ColumnType::time, 3, true}, &Thread::uninterruptible},
       {{"Stopped", "stopped_ns", ColumnType::time, 3, true}, &Thread::stopped},
       {{"Switches", "switches", ColumnType::count}, &Thread::switches},
       {{"Preempted", "preemptions", ColumnType::count, 3, true}, &Thread::preemptions},
       {{"Migrations", "migrations", ColumnType::count, 3, true}, &Thread::migrations},
       {{"Blocked in", "blocked_in", ColumnType::name, 3, true}, reasons_text, as_text},
       {{"Woken by", "woken_by", ColumnType::name, 3, true},
        [](const Thread& t) { return peers_text(t.woken_by, false); },
        as_text},
       {{"Ran instead", "ran_instead", ColumnType::name, 3, true},
        [](const Thread& t) { return peers_text(t.ran_instead, true); },
        as_text}},
      info.sched, most);
  if (table.rows.size() < info.sched.size())
    table.notes.push_back(fmt::format("{} more threads: --json shows all.", info.sched.size() - most));
  if (!table.rows.empty())
    table.notes.push_back(
        "Ran instead: who left the CPU when the thread got it after it was in the run queue, and how long it had "
        "been.");
  return table;
}

}  // namespace culprit::cli
