#include "summary/recorded_tables.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/saturating.h"
#include "core/text.h"
#include "core/units.h"
#include "model/table_rows.h"
#include "stats/log_buckets.h"
#include "summary/request_table.h"
#include "trace/call_estimates.h"
#include "trace/sampling_rate.h"
#include "trace/span.h"

namespace culprit::summary {

namespace {

using model::Cell;
using model::ColumnType;
using model::Table;

struct Row {
  std::string what;
  std::string disk;
  std::string process;
  std::string thread;
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  std::uint64_t processes = 1;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Ns time = 0;
  Ns longest = 0;
  const DurationCounts* durations = nullptr;
};

std::string process_name(const Trace& trace, ProcessId id) {
  const Process& process = trace.processes[id];
  if (process.pid < 0) return "(kernel and others)";
  return process.name != 0 ? std::string(trace.strings[process.name]) : fmt::format("process {}", process.pid);
}

template <class Key>
std::vector<Row> longest_first(std::map<Key, Row>&& rows) {
  std::vector<Row> all;
  all.reserve(rows.size());
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  std::ranges::stable_sort(all, std::greater<>(), [](const Row& row) { return std::pair(row.time, row.count); });
  return all;
}

/// How durations spread, by process, disk (0: system calls) and name.
class Durations {
 public:
  explicit Durations(const Trace& trace) {
    for (const DurationCounts& counts : trace.durations)
      rows_.try_emplace({counts.process, counts.disk, counts.name}, &counts);
  }

  /// Null: not known.
  [[nodiscard]] const DurationCounts* of(ProcessId process, StringId disk, StringId name) const {
    const auto row = rows_.find({process, disk, name});
    return row == rows_.end() ? nullptr : row->second;
  }

 private:
  std::map<std::tuple<ProcessId, StringId, StringId>, const DurationCounts*> rows_;
};

Cell quantile(const Row& row, double q) {
  if (row.durations == nullptr) return {};
  const auto value = stats::log_bucket_quantile(row.durations->buckets, q);
  // A bucket is wider than what fell into it: nothing took longer than the longest.
  return value ? Cell(std::min(*value, static_cast<double>(std::max<Ns>(row.longest, 1)))) : Cell();
}

std::uint64_t timed(const Row& row) {
  return row.durations == nullptr
             ? 0
             : std::accumulate(row.durations->buckets.begin(), row.durations->buckets.end(), std::uint64_t{0});
}

/// Calls that lasted longer than anybody looked.
std::uint64_t unended(const Row& row) { return row.durations == nullptr ? 0 : row.durations->unended; }

double rate(std::uint64_t count, const RecordedTableOptions& options) {
  return options.duration > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(options.duration) : 0;
}

Cell mean(const Row& row) {
  return row.count > 0 && row.time > 0 ? Cell(static_cast<double>(row.time) / static_cast<double>(row.count)) : Cell();
}

void note_rest(Table& table, std::size_t all, std::string_view by) {
  if (table.rows.size() < all)
    table.notes.push_back(fmt::format("{} more rows: culprit top --by {} --limit 0 shows all",
                                      format_count(all - table.rows.size()), by));
}

std::string several(std::string_view process, std::size_t processes) {
  return fmt::format("{} ({} processes)", process, format_count(processes));
}

void note_together(Table& table, std::size_t fewer, const RecordedTableOptions& options) {
  if (fewer > 0)
    table.notes.push_back(
        fmt::format("More than {} processes of one name are one row; --json has a row for each", options.most_of_name));
}

/// Rows of processes by how many of a name there are: those of names with more than `most` become one for each call.
/// `sums` keeps their durations. The number that went into others.
std::size_t put_together(std::vector<Row>& rows, std::size_t most, std::deque<DurationCounts>& sums) {
  std::map<std::string_view, std::set<std::int64_t>> pids;
  for (const Row& row : rows) pids[row.process].insert(row.pid);
  struct Group {
    std::size_t first = 0;
    DurationCounts* durations = nullptr;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  std::vector<Row> kept;
  for (Row& row : rows) {
    const bool many = pids[row.process].size() > most;
    const auto [group, is_new] =
        many ? groups.try_emplace({row.process, row.what}, Group{kept.size()}) : std::pair(groups.end(), true);
    if (is_new) {
      kept.push_back(row);
      continue;
    }
    Row& sum = kept[group->second.first];
    if (row.durations != nullptr) {
      DurationCounts*& durations = group->second.durations;
      if (durations == nullptr) {
        durations = &sums.emplace_back(sum.durations != nullptr ? *sum.durations : DurationCounts{});
        sum.durations = durations;
      }
      durations->buckets.resize(std::max(durations->buckets.size(), row.durations->buckets.size()));
      for (std::size_t i = 0; i < row.durations->buckets.size(); ++i)
        durations->buckets[i] += row.durations->buckets[i];
      durations->unended += row.durations->unended;
    }
    ++sum.processes;
    sum.pid = -1;
    sum.count += row.count;
    sum.time = add_saturating(sum.time, row.time);
    sum.longest = std::max(sum.longest, row.longest);
  }
  const std::size_t fewer = rows.size() - kept.size();
  for (Row& row : kept)
    if (row.processes > 1) row.process = several(row.process, row.processes);
  std::ranges::stable_sort(kept, std::greater<>(), [](const Row& row) { return std::pair(row.time, row.count); });
  rows = std::move(kept);
  return fewer;
}

Table table_of_calls(const Trace& trace, const RecordedTableOptions& options, bool by_thread) {
  const Durations durations(trace);
  std::map<std::tuple<ProcessId, std::int64_t, StringId>, Row> rows;
  for (const CallTotal& total : trace.calls) {
    const Track& track = trace.tracks[total.track];
    Row& row = rows[{track.process, by_thread ? track.tid : -1, total.name}];
    if (row.what.empty()) {
      row.what = trace.strings[total.name];
      row.process = process_name(trace, track.process);
      row.pid = trace.processes[track.process].pid;
      row.durations = durations.of(track.process, 0, total.name);
      row.tid = track.tid;
    }
    row.count += total.count;
    row.time = add_saturating(row.time, total.time);
    row.longest = std::max(row.longest, total.longest_so_far);
  }
  if (by_thread) {
    std::map<std::pair<ProcessId, std::int64_t>, StringId> names;
    for (const Track& track : trace.tracks)
      if (track.name != 0 && (track.kind == TrackKind::thread || track.kind == TrackKind::sched))
        names.try_emplace({track.process, track.tid}, track.name);
    for (auto& [key, row] : rows)
      if (const auto name = names.find({std::get<0>(key), std::get<1>(key)}); name != names.end())
        row.thread = trace.strings[name->second];
  }
  auto sorted = longest_first(std::move(rows));
  std::deque<DurationCounts> sums;
  const std::size_t fewer =
      options.most_of_name > 0 && !by_thread ? put_together(sorted, options.most_of_name, sums) : 0;
  const auto of_thread = model::present_if(by_thread);
  const auto of_process = model::present_if(!by_thread);
  const auto has_unended =
      model::present_if(!by_thread && std::ranges::any_of(sorted, [](const Row& row) { return unended(row) > 0; }));
  Table table = model::make_table<Row>(
      by_thread ? "System calls of threads" : "System calls", by_thread ? "thread_calls" : "calls",
      {{{"Call", "call", ColumnType::name}, &Row::what},
       {{"Process", "process", ColumnType::name}, &Row::process, of_process},
       {{"Thread", "thread", ColumnType::name}, &Row::thread, of_thread},
       {{"Pid", "pid", ColumnType::count, 3, true}, [](const Row& row) { return model::known_cell(row.pid); }},
       {{"Tid", "tid", ColumnType::count}, [](const Row& row) { return model::known_cell(row.tid); }, of_thread},
       {{"Count", "count", ColumnType::count}, &Row::count},
       {{"Per s", "rate", ColumnType::number, 1, true}, [&](const Row& row) { return rate(row.count, options); }},
       {{"Total", "total_ns", ColumnType::time}, &Row::time},
       {{"Mean", "mean_ns", ColumnType::time}, mean},
       {{"p50", "p50_ns", ColumnType::time}, [](const Row& row) { return quantile(row, 0.5); }, of_process},
       {{"p99", "p99_ns", ColumnType::time}, [](const Row& row) { return quantile(row, 0.99); }, of_process},
       {{"Timed", "timed", ColumnType::count, 3, true}, timed, has_unended},
       {{"Unended", "unended", ColumnType::count}, unended, has_unended},
       {{"Longest", "longest_ns", ColumnType::time, 3, true}, &Row::longest}},
      sorted, options.limit);
  if (has_unended == model::Presence::always)
    table.notes.emplace_back(
        "Unended: calls that were to be timed and lasted longer than they were looked at (mostly 50 ms at most), "
        "beside "
        "those that were timed; Total, Mean, p50 and p99 know only the latter, and are too low by the others");
  note_rest(table, sorted.size(), by_thread ? "thread-call" : "call");
  if (sorted.empty()) table.notes.emplace_back("No system calls were recorded");
  note_together(table, fewer, options);
  if (const auto estimates = call_estimates(trace))
    table.notes.push_back(
        fmt::format("Counts and totals are estimates: {} (95 %, of all calls together)", to_string(*estimates)));
  return table;
}

/// Peers of all threads, most first.
struct PeerRow {
  std::string thread;
  std::int64_t tid = 0;
  std::string process;
  std::string peer;
  std::int64_t peer_tid = 0;
  std::uint64_t count = 0;
  Ns time = 0;
};

std::vector<PeerRow> peers_of(const Trace& trace, std::vector<SchedPeer> ThreadSched::*list) {
  std::vector<PeerRow> rows;
  for (const ThreadSched& thread : trace.sched) {
    const Track& track = trace.tracks[thread.track];
    for (const SchedPeer& peer : thread.*list)
      rows.push_back({std::string(trace.strings[track.name]), track.tid, process_name(trace, track.process),
                      peer.tid == 0 ? std::string(kNoThread) : std::string(trace.strings[peer.name]), peer.tid,
                      peer.count, peer.time});
  }
  return rows;
}

/// `none`: what it says of itself without a row, though scheduling was recorded.
Table table_of_peers(std::string title, std::string key, std::string heading, const std::vector<PeerRow>& rows,
                     bool timed, std::size_t limit, std::string none) {
  Table table = model::make_table<PeerRow>(
      std::move(title), std::move(key),
      {{{"Thread", "thread", ColumnType::name}, &PeerRow::thread},
       {{"Tid", "tid", ColumnType::count}, &PeerRow::tid},
       {{"Process", "process", ColumnType::name, 3, true}, &PeerRow::process},
       {{std::move(heading), "peer", ColumnType::name}, &PeerRow::peer},
       {{"Its tid", "peer_tid", ColumnType::count}, [](const PeerRow& row) { return model::known_cell(row.peer_tid); }},
       {{"Count", "count", ColumnType::count}, &PeerRow::count},
       {{"Time", "time_ns", ColumnType::time}, &PeerRow::time, model::present_if(timed)}},
      rows, limit);
  note_rest(table, rows.size(), timed ? "rival" : "waker");
  if (rows.empty()) table.notes.push_back(std::move(none));
  return table;
}

std::string without_rows(const Trace& trace, std::string none) {
  return trace.sched.empty() ? "No scheduling was recorded" : std::move(none);
}

}  // namespace

Table call_table(const Trace& trace, const RecordedTableOptions& options) {
  return table_of_calls(trace, options, false);
}

Table thread_call_table(const Trace& trace, const RecordedTableOptions& options) {
  return table_of_calls(trace, options, true);
}

Table disk_table(const Trace& trace, const RecordedTableOptions& options) {
  const Durations durations(trace);
  std::map<std::tuple<StringId, StringId, ProcessId>, Row> rows;
  for (const DiskTotal& total : trace.disks) {
    Row& row = rows[{total.disk, total.operation, total.process}];
    if (row.what.empty()) {
      row.what = trace.strings[total.operation];
      row.disk = trace.strings[total.disk];
      row.process = process_name(trace, total.process);
      row.pid = trace.processes[total.process].pid;
      row.durations = durations.of(total.process, total.disk, total.operation);
    }
    row.count += total.count;
    row.bytes += total.bytes;
    row.time = add_saturating(row.time, total.time);
    row.longest = std::max(row.longest, total.longest_so_far);
  }
  const auto sorted = longest_first(std::move(rows));
  Table table = model::make_table<Row>(
      "Requests to disks", "disks",
      {{{"Disk", "disk", ColumnType::name}, &Row::disk},
       {{"Kind", "operation", ColumnType::name}, &Row::what},
       {{"Issued by", "process", ColumnType::name}, &Row::process},
       {{"Pid", "pid", ColumnType::count, 3, true}, [](const Row& row) { return model::known_cell(row.pid); }},
       {{"Count", "count", ColumnType::count}, &Row::count},
       {{"Bytes", "bytes", ColumnType::bytes}, &Row::bytes},
       {{"Mean", "mean_ns", ColumnType::time}, mean},
       {{"p50", "p50_ns", ColumnType::time}, [](const Row& row) { return quantile(row, 0.5); }},
       {{"p99", "p99_ns", ColumnType::time}, [](const Row& row) { return quantile(row, 0.99); }},
       {{"Longest", "longest_ns", ColumnType::time}, &Row::longest},
       {{"Per s", "rate", ColumnType::number, 1, true}, [&](const Row& row) { return rate(row.count, options); }}},
      sorted, options.limit);
  note_rest(table, sorted.size(), "disk");
  if (sorted.empty())
    table.notes.emplace_back("No requests to disks were recorded");
  else
    table.notes.emplace_back("Times are those of the device; what is written back later is issued by the kernel");
  return table;
}

namespace {

struct Faults {
  std::string process;
  std::int64_t pid = -1;
  std::int64_t minor = 0;
  std::int64_t major = 0;
};

/// As for calls.
std::size_t put_together(std::vector<Faults>& rows, std::size_t most) {
  std::map<std::string, std::vector<const Faults*>> of_name;
  for (const Faults& row : rows) of_name[row.process].push_back(&row);
  std::vector<Faults> kept;
  for (const auto& [name, all] : of_name) {
    if (all.size() <= most) {
      for (const Faults* row : all) kept.push_back(*row);
      continue;
    }
    Faults& sum = kept.emplace_back(Faults{.process = several(name, all.size())});
    for (const Faults* row : all) {
      sum.minor += row->minor;
      sum.major += row->major;
    }
  }
  const std::size_t fewer = rows.size() - kept.size();
  rows = std::move(kept);
  return fewer;
}

}  // namespace

Table fault_table(const Trace& trace, const RecordedTableOptions& options) {
  std::map<ProcessId, Faults> rows;
  for (const CounterSeries& series : trace.counters) {
    const std::string_view name = trace.strings[series.name];
    const bool minor = name == "page_faults.minor";
    if ((!minor && name != "page_faults.major") || series.samples.empty()) continue;
    Faults& row = rows[series.process];
    row.process = process_name(trace, series.process);
    row.pid = trace.processes[series.process].pid;
    const auto news = static_cast<std::int64_t>(series.samples.back().value - series.samples.front().value);
    (minor ? row.minor : row.major) = std::max<std::int64_t>(news, 0);
  }
  std::vector<Faults> sorted;
  sorted.reserve(rows.size());
  for (auto& [process, row] : rows) sorted.push_back(std::move(row));
  const std::size_t fewer = options.most_of_name > 0 ? put_together(sorted, options.most_of_name) : 0;
  std::ranges::stable_sort(sorted, std::greater<>(), [](const Faults& row) { return std::pair(row.major, row.minor); });
  const auto per_second = [&](std::int64_t count) { return rate(static_cast<std::uint64_t>(count), options); };
  Table table = model::make_table<Faults>(
      "Page faults", "page_faults",
      {{{"Process", "process", ColumnType::name}, &Faults::process},
       {{"Pid", "pid", ColumnType::count}, [](const Faults& row) { return model::known_cell(row.pid); }},
       {{"Minor", "minor", ColumnType::count}, &Faults::minor},
       {{"Major", "major", ColumnType::count}, &Faults::major},
       {{"Minor per s", "minor_rate", ColumnType::number, 1}, [&](const Faults& row) { return per_second(row.minor); }},
       {{"Major per s", "major_rate", ColumnType::number, 1},
        [&](const Faults& row) { return per_second(row.major); }}},
      sorted, options.limit);
  note_rest(table, sorted.size(), "fault");
  note_together(table, fewer, options);
  if (sorted.empty()) table.notes.emplace_back("No page faults were recorded");
  return table;
}

Table waker_table(const Trace& trace, const RecordedTableOptions& options) {
  auto rows = peers_of(trace, &ThreadSched::woken_by);
  std::ranges::stable_sort(rows, std::greater<>(), &PeerRow::count);
  return table_of_peers("Who woke whom", "wakers", "Woken by", rows, false, options.limit,
                        without_rows(trace, "No thread was woken"));
}

Table rival_table(const Trace& trace, const RecordedTableOptions& options) {
  auto rows = peers_of(trace, &ThreadSched::ran_instead);
  std::ranges::stable_sort(rows, std::greater<>(), &PeerRow::time);
  Table table =
      table_of_peers("Who ran while a thread was in the run queue", "rivals", "Ran instead", rows, true, options.limit,
                     without_rows(trace, "Nobody was seen to take a CPU or to leave it while a thread waited for one"));
  if (!rows.empty()) table.notes.emplace_back("Time: for how long the other had the CPU for which the thread waited");
  return table;
}

namespace {

/// What recording cost, by the recorder's own account.
std::optional<model::Fact> recorder_fact(const Trace& trace) {
  if (trace.ranks.size() != 1) return std::nullopt;
  const auto number = [&](std::string_view key) {
    return static_cast<double>(parse_number<std::int64_t>(fact_of(trace, key)).value_or(0));
  };
  const double duration = number("record.duration_ns");
  const double own = number("cost.own.cpu_ns");
  if (duration <= 0 || own <= 0) return std::nullopt;
  std::string text = fmt::format("{:.1f} % of one CPU", 100 * own / duration);
  if (const double kernel = number("cost.kernel.cpu_ns"); kernel > 0)
    text += fmt::format(", {:.1f} % in the kernel", 100 * kernel / duration);
  if (const double memory = number("cost.own.peak_memory_bytes"); memory > 0)
    text += fmt::format(", {} of memory", format_bytes(memory));
  return model::Fact{"recorder", std::move(text)};
}

}  // namespace

std::vector<model::Fact> recorded_facts(const Trace& trace) {
  const Interval span = recorded_span(trace);
  const RecordedTableOptions options = {.duration = span.end - span.begin};
  std::vector<model::Fact> facts;
  if (auto requests = request_fact(trace, options.duration)) facts.push_back(std::move(*requests));
  std::uint64_t calls = 0;
  std::map<std::string_view, Ns> by_call;
  for (const CallTotal& total : trace.calls) {
    calls += total.count;
    Ns& time = by_call[trace.strings[total.name]];
    time = add_saturating(time, total.time);
  }
  if (calls > 0) {
    const auto longest = std::ranges::max_element(by_call, {}, [](const auto& call) { return call.second; });
    const auto estimates = call_estimates(trace);
    const std::string doubt = !estimates         ? ""
                              : estimates->error ? fmt::format(" ± {:.0f} %", *estimates->error * kPercent)
                                                 : ", an estimate";
    facts.push_back(
        {"system calls", fmt::format("{}{} ({:.0f} per s), most time in {}: {}", format_count(calls), doubt,
                                     rate(calls, options), longest->first, format_duration(longest->second))});
    if (estimates) facts.back().value += "; " + to_string(*estimates);
  }
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flushes = 0;
  for (const DiskTotal& total : trace.disks) {
    requests += total.count;
    bytes += total.bytes;
    if (trace.strings[total.operation] == "flush") flushes += total.count;
  }
  if (requests > 0)
    facts.push_back({"disks", fmt::format("{} requests, {}, {} flushes", format_count(requests),
                                          format_bytes(static_cast<double>(bytes)), format_count(flushes))});
  if (const auto rates = sampling_rates(trace); rates && was_lowered(*rates))
    facts.push_back({"call stacks", to_string(*rates)});
  if (auto recorder = recorder_fact(trace)) facts.push_back(std::move(*recorder));
  return facts;
}

const std::vector<std::string>& recorded_table_names() {
  static const std::vector<std::string> kNames = {"request", "call", "thread-call", "disk", "fault", "waker", "rival"};
  return kNames;
}

Table recorded_table(const Trace& trace, std::string_view by, std::size_t limit, bool for_people) {
  constexpr std::size_t kMostOfName = 8;
  const Interval span = recorded_span(trace);
  const RecordedTableOptions options = {
      .limit = limit, .duration = span.end - span.begin, .most_of_name = for_people ? kMostOfName : 0};
  if (by == "request") return request_table(trace, options.duration);
  if (by == "call") return call_table(trace, options);
  if (by == "thread-call") return thread_call_table(trace, options);
  if (by == "disk") return disk_table(trace, options);
  if (by == "fault") return fault_table(trace, options);
  return by == "waker" ? waker_table(trace, options) : rival_table(trace, options);
}

}  // namespace culprit::summary
