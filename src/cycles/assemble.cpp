#include "cycles/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/intervals.h"
#include "cycles/draft.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

constexpr std::uint32_t kUnknownLane = kNone;

/// End of the last host window: that of its marker when markers follow each other without a gap, else one usual period.
Ns last_end(const Lane& lane) {
  const Cut& last = lane.cuts.back();
  if (lane.cuts.size() < 3) return std::max(last.end, last.begin + 1);
  std::vector<Ns> periods;
  std::vector<Ns> tails;
  for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i) {
    periods.push_back(lane.cuts[i + 1].begin - lane.cuts[i].begin);
    tails.push_back(lane.cuts[i + 1].begin - lane.cuts[i].end);
  }
  const Ns period = stats::median_of_times(periods);
  if (last.end > last.begin && stats::median_of_times(tails) < period / 20) return last.end;
  return std::max(last.end, last.begin + period);
}

/// Which lane the slices of a process belong to.
std::vector<std::uint32_t> lanes_of_processes(const Trace& trace, const Draft& draft) {
  std::vector<std::uint32_t> only(trace.ranks.size(), kUnknownLane);
  std::vector<std::uint32_t> count(trace.ranks.size(), 0);
  for (std::uint32_t l = 0; l < draft.lanes.size(); ++l) {
    only[draft.lanes[l].lane->rank] = l;
    ++count[draft.lanes[l].lane->rank];
  }
  std::vector<std::uint32_t> lane_of(trace.processes.size(), kUnknownLane);
  for (std::size_t p = 0; p < trace.processes.size(); ++p)
    if (count[trace.processes[p].rank] == 1) lane_of[p] = only[trace.processes[p].rank];
  for (std::uint32_t l = 0; l < draft.lanes.size(); ++l)
    if (const ProcessId process = draft.lanes[l].lane->process; process != kNone) lane_of[process] = l;
  return lane_of;
}

void place_by_time(const Trace& trace, const SliceOrder& order, bool device_time,
                   const std::vector<std::uint32_t>& lane_of, Draft& draft) {
  for (TrackId t = 0; t < trace.tracks.size(); ++t) {
    const std::uint32_t l = lane_of[trace.tracks[t].process];
    if (l == kUnknownLane) continue;
    const DraftLane& lane = draft.lanes[l];
    const std::vector<Cut>& cuts = lane.lane->cuts;
    std::uint32_t i = 0;
    for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
      const SliceIndex index = order.order[k];
      const Slice& s = trace.slices[index];
      if (!device_time && (s.gpu != kNone || trace.tracks[t].kind == TrackKind::gpu_stream)) continue;
      if (s.begin < cuts.front().begin) continue;
      while (i + 1 < lane.size() && cuts[i + 1].begin <= s.begin) ++i;
      if (s.begin < lane.end[i]) draft.cycle_of_slice[index] = lane.first + i;
    }
  }
}

struct DeviceRows {
  std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<model::DeviceWindow>> windows;  // by (lane, device)
  std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<std::tuple<bool, Ns, SliceIndex>>> first;
};

/// The stream with the most work of each (lane, device).
std::map<std::pair<std::uint32_t, std::int32_t>, std::int32_t> main_streams(
    const Trace& trace, const std::vector<std::uint32_t>& lane_of_cycle, const Draft& draft) {
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, double> work;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    const std::uint32_t c = draft.cycle_of_slice[gpu.slice];
    if (c != kNone)
      work[{lane_of_cycle[c], gpu.device, gpu.stream}] += static_cast<double>(trace.slices[gpu.slice].duration);
  }
  std::map<std::pair<std::uint32_t, std::int32_t>, std::int32_t> main;
  std::map<std::pair<std::uint32_t, std::int32_t>, double> most;
  for (const auto& [key, sum] : work) {
    const std::pair where{std::get<0>(key), std::get<1>(key)};
    const auto [it, fresh] = most.try_emplace(where, sum);
    if (!fresh && sum <= it->second) continue;
    it->second = sum;
    main[where] = std::get<2>(key);
  }
  return main;
}

/// Begins and counts of the device windows, from the GPU work whose cycle is known. A window begins with the first
/// operation that the cycle launched on the main stream: input copies on a stream of their own run while the cycle
/// before still computes. Without one there, on any stream.
DeviceRows open_windows(const Trace& trace, const std::vector<std::uint32_t>& lane_of_cycle, const Draft& draft) {
  DeviceRows rows;
  const auto main = main_streams(trace, lane_of_cycle, draft);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    const std::uint32_t c = draft.cycle_of_slice[gpu.slice];
    if (c == kNone) continue;
    const std::uint32_t l = lane_of_cycle[c];
    auto& windows = rows.windows[{l, gpu.device}];
    auto& first = rows.first[{l, gpu.device}];
    if (windows.empty()) {
      windows.resize(draft.lanes[l].size());
      first.resize(draft.lanes[l].size(), {true, std::numeric_limits<Ns>::max(), kNone});
    }
    const std::uint32_t i = c - draft.lanes[l].first;
    const Slice& s = trace.slices[gpu.slice];
    const std::tuple<bool, Ns, SliceIndex> launched{gpu.stream != main.at({l, gpu.device}),
                                                    gpu.launcher == kNone ? s.begin : trace.slices[gpu.launcher].begin,
                                                    gpu.slice};
    model::DeviceWindow& window = windows[i];
    if (window.operations++ == 0) window.end = s.end();
    window.end = std::max(window.end, s.end());
    if (launched < first[i]) {
      first[i] = launched;
      window.begin = s.begin;
    }
  }
  // Ends: the next cycle's begin. A begin before that of the cycle before would make windows overlap.
  for (auto& [key, windows] : rows.windows) {
    Ns reached = std::numeric_limits<Ns>::min();
    model::DeviceWindow* before = nullptr;
    for (model::DeviceWindow& window : windows) {
      if (window.operations == 0) continue;
      window.device = key.second;
      window.begin = std::max(window.begin, reached);
      if (before != nullptr) before->end = window.begin;
      window.end = std::max(window.end, window.begin);
      reached = window.begin;
      before = &window;
    }
  }
  return rows;
}

/// Row of the window in which `at` lies, by begins alone; kNone before the first.
std::uint32_t window_at(const std::vector<std::pair<Ns, std::uint32_t>>& begins, Ns at) {
  const auto after = std::ranges::upper_bound(begins, at, {}, &std::pair<Ns, std::uint32_t>::first);
  return after == begins.begin() ? kNone : std::prev(after)->second;
}

/// GPU work without a known launcher goes where its time says, within what its stream allows: streams run in order, so
/// it lies between the cycles of its neighbours there, and what runs before everything known was launched before the
/// recording.
void place_unlinked(const Trace& trace, const SliceOrder& order, const std::vector<std::uint32_t>& lane_of,
                    DeviceRows& rows, Draft& draft) {
  std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<std::pair<Ns, std::uint32_t>>> begins;
  for (const auto& [key, windows] : rows.windows)
    for (std::uint32_t i = 0; i < windows.size(); ++i)
      if (windows[i].operations > 0) begins[key].emplace_back(windows[i].begin, i);  // its last is the open one
  for (TrackId t = 0; t < trace.tracks.size(); ++t) {
    const std::uint32_t l = lane_of[trace.tracks[t].process];
    if (l == kUnknownLane) continue;
    const DraftLane& lane = draft.lanes[l];
    const auto mine = [&](std::uint64_t k) -> const GpuSlice* {
      const Slice& s = trace.slices[order.order[k]];
      return s.gpu == kNone ? nullptr : &trace.gpu[s.gpu];
    };
    // Of an operation with a launcher its cycle in the lane; kNone: it lies in none, or in that of another process.
    const auto cycle_in_lane = [&](const GpuSlice& gpu) {
      const std::uint32_t c = draft.cycle_of_slice[gpu.slice];
      return c != kNone && c >= lane.first && c - lane.first < lane.size() ? c - lane.first : kNone;
    };
    // Cycle (in the lane) of the next linked operation on the stream, from the end to the begin.
    const std::uint64_t from = order.track_begin[t];
    const std::uint64_t to = order.track_begin[t + 1];
    bool linked = false;
    bool unlinked = false;
    for (std::uint64_t k = from; k < to; ++k)
      if (const GpuSlice* gpu = mine(k)) (gpu->launcher != kNone ? linked : unlinked) = true;
    if (!unlinked) continue;
    std::vector<std::uint32_t> next(to - from, lane.size() - 1);
    for (std::uint64_t k = to, last = lane.size() - 1; k-- > from;) {
      if (const GpuSlice* gpu = mine(k); gpu != nullptr && gpu->launcher != kNone)
        if (const std::uint32_t i = cycle_in_lane(*gpu); i != kNone) last = i;
      next[k - from] = static_cast<std::uint32_t>(last);
    }
    std::uint32_t before = kNone;
    for (std::uint64_t k = from; k < to; ++k) {
      const GpuSlice* gpu = mine(k);
      if (gpu == nullptr) continue;
      if (gpu->launcher != kNone) {
        if (const std::uint32_t i = cycle_in_lane(*gpu); i != kNone) before = i;
        continue;
      }
      if (linked && before == kNone) continue;
      const auto at = begins.find({l, gpu->device});
      if (at == begins.end()) continue;
      const Slice& s = trace.slices[gpu->slice];
      std::uint32_t i = window_at(at->second, s.begin);
      if (i == kNone) continue;
      if (linked) i = std::clamp(i, before, std::max(before, next[k - from]));
      model::DeviceWindow& window = rows.windows[{l, gpu->device}][i];
      if (window.operations == 0) continue;
      const bool last = i == at->second.back().second;
      if (last && s.begin >= std::max(window.end, lane.end.back())) continue;
      if (last) window.end = std::max(window.end, s.end());
      draft.cycle_of_slice[gpu->slice] = lane.first + i;
      ++window.operations;
      ++draft.placed_by_time;
    }
  }
}

void measure_windows(const Trace& trace, DeviceRows& rows, Draft& draft) {
  std::map<std::pair<std::uint16_t, std::int32_t>, std::vector<Interval>> busy;
  for (const auto& [key, windows] : rows.windows) busy[{draft.lanes[key.first].lane->rank, key.second}];
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& s = trace.slices[trace.gpu[g].slice];
    if (const auto at = busy.find({s.rank, trace.gpu[g].device}); at != busy.end())
      at->second.push_back({s.begin, s.end()});
  }
  for (auto& [key, spans] : busy) unite(spans);
  for (auto& [key, windows] : rows.windows) {
    const DraftLane& lane = draft.lanes[key.first];
    const std::vector<Interval>& spans = busy[{lane.lane->rank, key.second}];
    std::size_t from = 0;
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      model::DeviceWindow& window = windows[i];
      if (window.operations == 0) continue;
      window.busy = covered(spans, window.begin, window.end, from);
      window.idle = window.end - window.begin - window.busy;
      draft.cycles[lane.first + i].devices.push_back(window);
    }
  }
}

void measure_spans(const Trace& trace, const std::vector<std::uint32_t>& lane_of_cycle, Draft& draft) {
  draft.operations.assign(draft.cycles.size(), 0);
  draft.host_slices.assign(draft.cycles.size(), 0);
  std::vector<char> seen(draft.cycles.size(), 0);
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t c = draft.cycle_of_slice[i];
    if (c == kNone) continue;
    const Slice& s = trace.slices[i];
    const bool gpu = s.gpu != kNone;
    ++(gpu ? draft.operations : draft.host_slices)[c];
    const DraftLane& lane = draft.lanes[lane_of_cycle[c]];
    // A host frame that outlasts its cycle does not make the cycle longer.
    const Ns end = gpu ? s.end() : std::min(s.end(), lane.end[c - lane.first]);
    model::Cycle& cycle = draft.cycles[c];
    cycle.span_begin = seen[c] != 0 ? std::min(cycle.span_begin, s.begin) : s.begin;
    cycle.span_end = seen[c] != 0 ? std::max(cycle.span_end, end) : end;
    seen[c] = 1;
  }
  for (const DraftLane& lane : draft.lanes)
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      model::Cycle& cycle = draft.cycles[lane.first + i];
      if (seen[lane.first + i] == 0) {
        cycle.span_begin = cycle.begin;
        cycle.span_end = lane.end[i];
      }
      cycle.period = i + 1 < lane.size()  ? lane.lane->cuts[i + 1].begin - cycle.begin
                     : cycle.stands_still ? lane.end[i] - cycle.begin
                                          : std::max<Ns>(0, cycle.span_end - cycle.begin);
    }
}

/// Rows by (number, rank, process).
Found finish(Draft& draft, const Cutting& cutting, std::vector<std::string> notes) {
  std::vector<std::uint32_t> rows(draft.cycles.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::ranges::sort(rows, [&](std::uint32_t a, std::uint32_t b) {
    const model::Cycle& x = draft.cycles[a];
    const model::Cycle& y = draft.cycles[b];
    return std::tuple(x.number, x.rank, x.process, a) < std::tuple(y.number, y.rank, y.process, b);
  });
  std::vector<std::uint32_t> place(rows.size());
  Found found;
  found.placed_by_time = draft.placed_by_time;
  model::Cycles& cycles = found.cycles;
  cycles.method = cutting.method;
  cycles.anchor = cutting.anchor;
  cycles.anchor_given = cutting.given;
  cycles.period_confidence = cutting.period_confidence;
  cycles.phase_confidence = cutting.phase_confidence;
  cycles.reason = cutting.reason;
  cycles.notes = std::move(notes);
  cycles.cycles.reserve(rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    place[rows[i]] = i;
    cycles.cycles.push_back(std::move(draft.cycles[rows[i]]));
  }
  found.cycle_of_slice = std::move(draft.cycle_of_slice);
  for (std::uint32_t& c : found.cycle_of_slice)
    if (c != kNone) c = place[c];
  return found;
}

}  // namespace

Found assemble(const Trace& trace, const SliceOrder& order, const Cutting& cutting) {
  Draft draft;
  draft.cycle_of_slice.assign(trace.slices.size(), kNone);
  std::vector<std::uint32_t> lane_of_cycle;
  for (const Lane& lane : cutting.lanes) {
    if (lane.cuts.empty()) continue;
    DraftLane mine;
    mine.lane = &lane;
    mine.first = static_cast<std::uint32_t>(draft.cycles.size());
    const std::optional<Ns> still = stands_still_until(trace, order, lane);
    for (std::size_t i = 0; i < lane.cuts.size(); ++i) {
      const bool last = i + 1 == lane.cuts.size();
      mine.end.push_back(last ? still.value_or(last_end(lane)) : lane.cuts[i + 1].begin);
      model::Cycle cycle;
      cycle.rank = lane.rank;
      cycle.process = lane.process;
      if (cycle.process == kNone && lane.track != kNone) cycle.process = trace.tracks[lane.track].process;
      cycle.begin = lane.cuts[i].begin;
      cycle.stands_still = last && still;
      cycle.ends = last ? model::CycleEnd::open : model::CycleEnd::at_next;
      draft.cycles.push_back(std::move(cycle));
      lane_of_cycle.push_back(static_cast<std::uint32_t>(draft.lanes.size()));
    }
    draft.lanes.push_back(std::move(mine));
  }
  std::vector<std::string> notes = cutting.notes;
  const std::vector<std::uint32_t> lane_of = lanes_of_processes(trace, draft);
  place_by_time(trace, order, cutting.device_time, lane_of, draft);
  if (!cutting.device_time)
    for (std::size_t g = 0; g < trace.gpu.size(); ++g)
      if (const GpuSlice& gpu = trace.gpu[g]; gpu.launcher != kNone)
        draft.cycle_of_slice[gpu.slice] = draft.cycle_of_slice[gpu.launcher];
  DeviceRows rows = open_windows(trace, lane_of_cycle, draft);
  if (!cutting.device_time) place_unlinked(trace, order, lane_of, rows, draft);
  measure_windows(trace, rows, draft);
  measure_spans(trace, lane_of_cycle, draft);
  find_phases(trace, cutting, draft);
  if (const std::size_t skipped = mark_skipped(draft); skipped > 0)
    notes.push_back(fmt::format("numbers of markers are skipped: {} cycle{} of several steps {} left out", skipped,
                                skipped == 1 ? "" : "s", skipped == 1 ? "is" : "are"));
  mark_edges(draft);
  find_idle_host(trace, order, cutting, draft);
  for (model::Cycle& cycle : draft.cycles)
    if (cycle.stands_still) cycle.no_work = 0;
  number_cycles(trace, draft, notes);
  std::uint64_t outside = 0;
  std::uint64_t unlaunched = 0;
  double time_outside = 0;
  double time = 0;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const auto duration = static_cast<double>(trace.slices[trace.gpu[g].slice].duration);
    time += duration;
    if (draft.cycle_of_slice[trace.gpu[g].slice] != kNone) continue;
    ++outside;
    time_outside += duration;
    unlaunched += trace.gpu[g].launcher == kNone ? 1U : 0U;
  }
  if (outside > 0)
    notes.push_back(fmt::format(
        "{} of {} GPU operations ({:.0f}% of their time) lie in no cycle{}", outside, trace.gpu.size(),
        time > 0 ? time_outside / time * 100 : 0,
        unlaunched == 0 ? ""
                        : fmt::format("; the launch of {} is not in the recording{}",
                                      unlaunched == outside ? "each of these" : fmt::format("{} of these", unlaunched),
                                      cutting.device_time ? "" : ", as of work launched before it began")));
  if (draft.placed_by_time > 0)
    notes.push_back(
        fmt::format("{} GPU operations without a known launch were placed by their time", draft.placed_by_time));
  return finish(draft, cutting, std::move(notes));
}

}  // namespace culprit::cycles
