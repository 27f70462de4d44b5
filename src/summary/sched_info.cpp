#include "summary/sched_info.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/saturating.h"

namespace culprit::summary {

namespace {

using ThreadKey = std::pair<ProcessId, std::int64_t>;
using Reasons = std::map<ThreadKey, std::map<StringId, model::CountAndSum>>;

/// Time of every thread by what it was blocked in, from the slices that say it.
Reasons blocked_reasons(const Trace& trace) {
  Reasons reasons;
  std::vector<bool> wanted;
  wanted.reserve(trace.categories.size());
  for (const Category& category : trace.categories) wanted.push_back(category.name == "blocked");
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (!wanted[slice.category]) continue;
    const Track& track = trace.tracks[slice.track];
    model::CountAndSum& sum = reasons[{track.process, track.tid}][slice.name];
    ++sum.count;
    sum.sum = add_saturating(sum.sum, slice.duration);
  }
  return reasons;
}

std::vector<model::PeerInfo> peers(const Trace& trace, const std::vector<SchedPeer>& list) {
  std::vector<model::PeerInfo> result;
  result.reserve(list.size());
  for (const SchedPeer& peer : list)
    result.push_back({peer.tid == 0 ? std::string(kNoThread) : std::string(trace.strings[peer.name]), peer.tid,
                      peer.count, peer.time});
  return result;
}

}  // namespace

std::vector<model::ThreadSchedInfo> sched_info(const Trace& trace) {
  std::map<TrackId, std::size_t> rows;
  std::vector<model::ThreadSchedInfo> threads;
  for (TrackId id = 0; id < trace.tracks.size(); ++id) {
    if (trace.tracks[id].kind != TrackKind::sched) continue;
    rows.emplace(id, threads.size());
    const Track& track = trace.tracks[id];
    const Process& process = trace.processes[track.process];
    model::ThreadSchedInfo& thread = threads.emplace_back();
    thread.rank = process.rank < trace.ranks.size() && trace.ranks[process.rank].rank >= 0
                      ? trace.ranks[process.rank].rank
                      : process.rank;
    thread.pid = process.pid;
    thread.process = trace.strings[process.name];
    thread.tid = track.tid;
    thread.thread = trace.strings[track.name];
  }
  if (threads.empty()) return threads;
  const StringId on_cpu = trace.strings.find("oncpu", kNone);
  const StringId run_queue = trace.strings.find("runq", kNone);
  const StringId blocked = trace.strings.find("blocked", kNone);
  const StringId uninterruptible = trace.strings.find("blocked_uninterruptible", kNone);
  const StringId stopped = trace.strings.find("stopped", kNone);
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    model::ThreadSchedInfo& thread = threads[rows.at(slice.track)];
    const auto add = [&](Ns& sum) { sum = add_saturating(sum, slice.duration); };
    if (slice.name == on_cpu) add(thread.on_cpu);
    if (slice.name == run_queue) add(thread.run_queue);
    if (slice.name == uninterruptible) add(thread.uninterruptible);
    if (slice.name == stopped) add(thread.stopped);
    if (slice.name == blocked || slice.name == uninterruptible || slice.name == stopped) add(thread.blocked);
  }
  for (const ThreadSched& sched : trace.sched) {
    const auto row = rows.find(sched.track);
    if (row == rows.end()) continue;
    model::ThreadSchedInfo& thread = threads[row->second];
    thread.switches = sched.switches;
    thread.preemptions = sched.preemptions;
    thread.migrations = sched.migrations;
    thread.wakeups = sched.wakeups;
    thread.woken_by = peers(trace, sched.woken_by);
    thread.ran_instead = peers(trace, sched.ran_instead);
  }
  const Reasons reasons = blocked_reasons(trace);
  for (const auto& [id, row] : rows) {
    const auto known = reasons.find({trace.tracks[id].process, trace.tracks[id].tid});
    if (known == reasons.end()) continue;
    auto& list = threads[row].blocked_in;
    for (const auto& [name, sum] : known->second) list.emplace_back(trace.strings[name], sum);
    std::ranges::sort(list, [](const auto& a, const auto& b) {
      return std::tuple(-a.second.sum, a.first) < std::tuple(-b.second.sum, b.first);
    });
  }
  std::ranges::stable_sort(threads, [](const model::ThreadSchedInfo& a, const model::ThreadSchedInfo& b) {
    return std::tuple(-a.on_cpu, -a.run_queue, a.rank, a.pid, a.tid) <
           std::tuple(-b.on_cpu, -b.run_queue, b.rank, b.pid, b.tid);
  });
  return threads;
}

}  // namespace culprit::summary
