#include <map>

#include "core/intervals.h"
#include "cycles/draft.h"
#include "cycles/name_hints.h"

namespace culprit::cycles {

namespace {

Ns length(const std::vector<Interval>& merged) {
  Ns sum = 0;
  for (const Interval& s : merged) sum += s.end - s.begin;
  return sum;
}

/// Merged `a` without merged `b`.
std::vector<Interval> without(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  std::size_t k = 0;
  for (const Interval& s : a) {
    Ns at = s.begin;
    while (k < b.size() && b[k].end <= at) ++k;
    for (std::size_t i = k; i < b.size() && b[i].begin < s.end; ++i) {
      if (b[i].begin > at) out.push_back({at, b[i].begin});
      at = std::max(at, b[i].end);
    }
    if (at < s.end) out.push_back({at, s.end});
  }
  return out;
}

}  // namespace

void find_idle_host(const Trace& trace, const SliceOrder& order, const Cutting& cutting, Draft& draft) {
  // A sequence says nothing about what the host did between them.
  if (cutting.from_end_to_end || cutting.device_time || model::is_sequence(cutting.method) ||
      cutting.method == model::CycleMethod::work_unit)
    return;
  std::map<std::uint16_t, std::vector<Interval>> gpu_of_rank;
  for (const DraftLane& lane : draft.lanes) gpu_of_rank[lane.lane->rank];
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& s = trace.slices[trace.gpu[g].slice];
    if (const auto at = gpu_of_rank.find(s.rank); at != gpu_of_rank.end()) at->second.push_back({s.begin, s.end()});
  }
  for (auto& [rank, spans] : gpu_of_rank) unite(spans);

  std::vector<std::int8_t> waits(trace.strings.size(), -1);
  for (const DraftLane& draft_lane : draft.lanes) {
    const Lane& lane = *draft_lane.lane;
    if (lane.track == kNone) continue;
    const std::vector<Interval>& gpu = gpu_of_rank[lane.rank];
    std::size_t gpu_from = 0;
    std::uint64_t k = order.track_begin[lane.track];
    const std::uint64_t last = order.track_begin[lane.track + 1];
    for (std::uint32_t i = 0; i < draft_lane.size(); ++i) {
      const Ns begin = lane.cuts[i].begin;
      const Ns end = draft_lane.end[i];
      std::vector<Interval> active;
      std::vector<Interval> waiting;
      while (k < last && trace.slices[order.order[k]].begin < begin) ++k;
      for (; k < last && trace.slices[order.order[k]].begin < end; ++k) {
        const Slice& s = trace.slices[order.order[k]];
        // A frame that outlasts the cycle (the server's loop) says nothing about it; neither does the profiler's own
        // time.
        if (trace.slice_class(s) == SliceClass::overhead || (s.end() > end && s.begin != begin)) continue;
        std::int8_t& wait = waits[s.name];
        if (wait < 0) wait = is_waiting_for_requests(trace.name(s)) ? 1 : 0;
        (wait == 1 ? waiting : active).push_back({s.begin, std::min(end, s.end())});
      }
      if (active.empty()) continue;
      unite(active);
      unite(waiting);
      std::vector<Interval> work = without(active, waiting);
      while (gpu_from < gpu.size() && gpu[gpu_from].end <= begin) ++gpu_from;
      for (std::size_t g = gpu_from; g < gpu.size() && gpu[g].begin < end; ++g)
        work.push_back({std::max(begin, gpu[g].begin), std::min(end, gpu[g].end)});
      unite(work);
      draft.cycles[draft_lane.first + i].no_work = end - begin - length(work);
    }
  }
}

}  // namespace culprit::cycles
