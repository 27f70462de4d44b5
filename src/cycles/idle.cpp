#include <map>

#include "cycles/draft.h"
#include "cycles/name_hints.h"
#include "cycles/windows.h"

namespace culprit::cycles {

namespace {

Ns length(const std::vector<Span>& merged) {
  Ns sum = 0;
  for (const Span& s : merged) sum += s.second - s.first;
  return sum;
}

/// Merged `a` without merged `b`.
std::vector<Span> without(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> out;
  std::size_t k = 0;
  for (const Span& s : a) {
    Ns at = s.first;
    while (k < b.size() && b[k].second <= at) ++k;
    for (std::size_t i = k; i < b.size() && b[i].first < s.second; ++i) {
      if (b[i].first > at) out.emplace_back(at, b[i].first);
      at = std::max(at, b[i].second);
    }
    if (at < s.second) out.emplace_back(at, s.second);
  }
  return out;
}

}  // namespace

void find_idle_host(const Trace& trace, const SliceOrder& order, const Cutting& cutting, Draft& draft) {
  // A sequence of launches says nothing about what the host did between them.
  if (cutting.device_time || cutting.method == model::CycleMethod::launch_sequence) return;
  std::map<std::uint16_t, std::vector<Span>> gpu_of_rank;
  for (const DraftLane& lane : draft.lanes) gpu_of_rank[lane.lane->rank];
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& s = trace.slices[trace.gpu[g].slice];
    if (const auto at = gpu_of_rank.find(s.rank); at != gpu_of_rank.end()) at->second.emplace_back(s.begin, s.end());
  }
  for (auto& [rank, spans] : gpu_of_rank) merge_spans(spans);

  std::vector<std::int8_t> waits(trace.strings.size(), -1);
  for (const DraftLane& draft_lane : draft.lanes) {
    const Lane& lane = *draft_lane.lane;
    if (lane.track == kNone) continue;
    const std::vector<Span>& gpu = gpu_of_rank[lane.rank];
    std::size_t gpu_from = 0;
    std::uint64_t k = order.track_begin[lane.track];
    const std::uint64_t last = order.track_begin[lane.track + 1];
    for (std::uint32_t i = 0; i < draft_lane.size(); ++i) {
      const Ns begin = lane.cuts[i].begin;
      const Ns end = draft_lane.end[i];
      std::vector<Span> active;
      std::vector<Span> waiting;
      while (k < last && trace.slices[order.order[k]].begin < begin) ++k;
      for (; k < last && trace.slices[order.order[k]].begin < end; ++k) {
        const Slice& s = trace.slices[order.order[k]];
        // A frame that outlasts the cycle (the server's loop) says nothing about it; neither does the profiler's own
        // time.
        if (trace.slice_class(s) == SliceClass::overhead || (s.end() > end && s.begin != begin)) continue;
        std::int8_t& wait = waits[s.name];
        if (wait < 0) wait = is_waiting_for_requests(trace.name(s)) ? 1 : 0;
        (wait == 1 ? waiting : active).emplace_back(s.begin, std::min(end, s.end()));
      }
      if (active.empty()) continue;
      merge_spans(active);
      merge_spans(waiting);
      std::vector<Span> work = without(active, waiting);
      while (gpu_from < gpu.size() && gpu[gpu_from].second <= begin) ++gpu_from;
      for (std::size_t g = gpu_from; g < gpu.size() && gpu[g].first < end; ++g)
        work.emplace_back(std::max(begin, gpu[g].first), std::min(end, gpu[g].second));
      merge_spans(work);
      draft.cycles[draft_lane.first + i].no_work = end - begin - length(work);
    }
  }
}

}  // namespace culprit::cycles
