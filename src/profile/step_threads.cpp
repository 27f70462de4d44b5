#include "profile/step_threads.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace culprit::profile {

bool goes_on(const Trace& trace) {
  const std::pair<std::string, std::string> ended = {"record.end", "target_ended"};
  return std::ranges::none_of(trace.ranks, [&](const Rank& rank) {
    return !rank.recordings.empty() || std::ranges::find(rank.metadata, ended) != rank.metadata.end();
  });
}

std::map<ProcessId, TrackId> step_threads(const Trace& trace, const std::set<ProcessId>& processes) {
  std::map<std::pair<ProcessId, std::int64_t>, TrackId> scheduled;
  for (TrackId id = 0; id < trace.tracks.size(); ++id)
    if (trace.tracks[id].kind == TrackKind::sched)
      scheduled.try_emplace({trace.tracks[id].process, trace.tracks[id].tid}, id);
  if (scheduled.empty()) return {};
  std::vector<bool> marks;
  marks.reserve(trace.categories.size());
  for (const Category& category : trace.categories) marks.push_back(category.name == "step");
  std::vector<double> filled(trace.tracks.size());
  std::vector<double> stepped(trace.tracks.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const bool own =
        trace.tracks[slice.track].kind == TrackKind::thread || trace.slice_class(slice) == SliceClass::annotation;
    if (own) filled[slice.track] += static_cast<double>(slice.duration);
    if (marks[slice.category]) stepped[slice.track] += static_cast<double>(slice.duration);
  }
  std::map<ProcessId, TrackId> threads;
  for (const ProcessId process : processes) {
    double most = 0;
    TrackId best = kNone;
    bool has_steps = false;
    for (TrackId id = 0; id < stepped.size(); ++id)
      has_steps = has_steps || (trace.tracks[id].process == process && stepped[id] > 0);
    const std::vector<double>& shares = has_steps ? stepped : filled;
    for (TrackId id = 0; id < shares.size(); ++id) {
      if (trace.tracks[id].process != process || shares[id] <= most) continue;
      const auto sched = scheduled.find({process, trace.tracks[id].tid});
      if (sched == scheduled.end()) continue;
      most = shares[id];
      best = sched->second;
    }
    if (best != kNone) threads.emplace(process, best);
  }
  return threads;
}

std::set<std::pair<ProcessId, std::int64_t>> threads_of_steps(const Trace& trace, const model::Cycles& cycles) {
  std::set<ProcessId> processes;
  for (const model::Cycle& cycle : cycles.cycles) processes.insert(cycle.process);
  std::set<std::pair<ProcessId, std::int64_t>> threads;
  if (processes.empty()) return threads;
  for (const auto& [process, track] : step_threads(trace, processes))
    threads.insert({process, trace.tracks[track].tid});
  return threads;
}

}  // namespace culprit::profile
