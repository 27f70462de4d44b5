#include "cli/recording_tables.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/units.h"

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
    std::string_view reason = name;
    if (reason.starts_with("blocked:")) reason.remove_prefix(8);
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

model::Cell count_cell(std::uint64_t n) { return static_cast<std::int64_t>(n); }

}  // namespace

std::vector<model::Table> metadata_tables(const model::TraceInfo& info) {
  std::vector<model::Table> tables;
  const bool several = info.ranks.size() > 1;
  for (const Section& section : sections()) {
    model::Table table{std::string(section.title), std::string(section.key), {}, {}, {}};
    if (several) table.columns.push_back({"File", "path", ColumnType::name});
    table.columns.push_back({"What", "key", ColumnType::name});
    table.columns.push_back({"Value", "value", ColumnType::name});
    tables.push_back(std::move(table));
  }
  for (const model::RankInfo& rank : info.ranks)
    for (const auto& [key, value] : rank.metadata) {
      auto& rows = tables[section_of(key)].rows;
      if (several)
        rows.push_back({rank.path, key, value});
      else
        rows.push_back({key, value});
    }
  std::erase_if(tables, [](const model::Table& table) { return table.rows.empty(); });
  return tables;
}

model::Table process_sched_table(const model::TraceInfo& info) {
  model::Table table{"Scheduling of processes (sums over their threads)",
                     "sched_processes",
                     {{"Process", "process", ColumnType::name},
                      {"Pid", "pid", ColumnType::count},
                      {"Threads", "threads", ColumnType::count},
                      {"On CPU", "on_cpu_ns", ColumnType::time},
                      {"Run queue", "run_queue_ns", ColumnType::time},
                      {"Blocked", "blocked_ns", ColumnType::time},
                      {"Switches", "switches", ColumnType::count},
                      {"Preempted", "preemptions", ColumnType::count, 3, true},
                      {"Migrations", "migrations", ColumnType::count, 3, true}},
                     {},
                     {}};
  struct Sum {
    model::ThreadSchedInfo total;
    std::int64_t threads = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Sum> sums;
  for (const model::ThreadSchedInfo& thread : info.sched) {
    Sum& sum = sums[{thread.rank, thread.pid}];
    sum.total.process = thread.process;
    sum.total.on_cpu += thread.on_cpu;
    sum.total.run_queue += thread.run_queue;
    sum.total.blocked += thread.blocked;
    sum.total.switches += thread.switches;
    sum.total.preemptions += thread.preemptions;
    sum.total.migrations += thread.migrations;
    ++sum.threads;
  }
  for (const auto& [key, sum] : sums)
    table.rows.push_back({sum.total.process, key.second, sum.threads, sum.total.on_cpu, sum.total.run_queue,
                          sum.total.blocked, count_cell(sum.total.switches), count_cell(sum.total.preemptions),
                          count_cell(sum.total.migrations)});
  return table;
}

model::Table thread_sched_table(const model::TraceInfo& info, std::size_t most) {
  model::Table table{"Scheduling of threads",
                     "sched_threads",
                     {{"Thread", "thread", ColumnType::name},
                      {"Pid", "pid", ColumnType::count},
                      {"Tid", "tid", ColumnType::count},
                      {"On CPU", "on_cpu_ns", ColumnType::time},
                      {"Run queue", "run_queue_ns", ColumnType::time},
                      {"Blocked", "blocked_ns", ColumnType::time},
                      {"Uninterruptible", "uninterruptible_ns", ColumnType::time, 3, true},
                      {"Stopped", "stopped_ns", ColumnType::time, 3, true},
                      {"Switches", "switches", ColumnType::count},
                      {"Preempted", "preemptions", ColumnType::count, 3, true},
                      {"Migrations", "migrations", ColumnType::count, 3, true},
                      {"Blocked in", "blocked_in", ColumnType::name, 3, true},
                      {"Woken by", "woken_by", ColumnType::name, 3, true},
                      {"Ran instead", "ran_instead", ColumnType::name, 3, true}},
                     {},
                     {}};
  for (const model::ThreadSchedInfo& t : info.sched) {
    if (most != 0 && table.rows.size() == most) {
      table.notes.push_back(fmt::format("{} more threads: --json shows all.", info.sched.size() - most));
      break;
    }
    table.rows.push_back({t.thread, t.pid, t.tid, t.on_cpu, t.run_queue, t.blocked, t.uninterruptible, t.stopped,
                          count_cell(t.switches), count_cell(t.preemptions), count_cell(t.migrations), reasons_text(t),
                          peers_text(t.woken_by, false), peers_text(t.ran_instead, true)});
  }
  if (!table.rows.empty())
    table.notes.push_back(
        "Ran instead: who left the CPU when the thread got it after it was in the run queue, and how long it had "
        "been.");
  return table;
}

}  // namespace culprit::cli
