// Ids and arrows that several events share become links between slices.
#include <algorithm>
#include <tuple>

#include <tsl/hopscotch_map.h>
#include <tsl/hopscotch_set.h>

#include "core/hash.h"
#include "trace/builder.h"

namespace culprit {

namespace {

bool is_flow(char phase) { return phase == 's' || phase == 't' || phase == 'f'; }
bool is_launch(const Trace& trace, const Slice& slice) {
  return slice.gpu == kNone && is_host_api(trace.slice_class(slice));
}

/// A runtime call and the driver call inside it may share an id: the outer one launched.
bool launches_before(const Trace& trace, SliceIndex a, SliceIndex b) {
  const Slice& x = trace.slices[a];
  const Slice& y = trace.slices[b];
  const auto key = [&](const Slice& s) { return std::tuple(-s.duration, trace.slice_class(s), s.track); };
  if (x.begin != y.begin) return x.begin < y.begin;
  if (key(x) != key(y)) return key(x) < key(y);
  return stands_before(trace, a, b);
}

/// Slices that carry one of certain correlation ids, by id, track and begin.
class Carriers {
 public:
  Carriers(const Trace& trace, const tsl::hopscotch_set<std::uint32_t, Hash>& ids) : trace_(trace) {
    if (ids.empty()) return;
    const auto [lowest, highest] = std::ranges::minmax(ids);  // most slices need no look-up
    for (std::size_t i = 0; i < trace.slices.size(); ++i)
      if (const std::uint32_t id = trace.slices[i].correlation; id >= lowest && id <= highest && ids.contains(id))
        rows_.push_back(static_cast<SliceIndex>(i));
    std::ranges::sort(rows_, [&](SliceIndex a, SliceIndex b) {
      const Slice& x = trace.slices[a];
      const Slice& y = trace.slices[b];
      if (x.correlation != y.correlation) return x.correlation < y.correlation;
      if (x.track != y.track) return x.track < y.track;
      return stands_before(trace, a, b);
    });
  }

  /// All slices with the id.
  [[nodiscard]] std::span<const SliceIndex> of(std::uint32_t id) const {
    const auto id_of = [&](SliceIndex i) { return slice(i).correlation; };
    return {std::ranges::lower_bound(rows_, id, {}, id_of), std::ranges::upper_bound(rows_, id, {}, id_of)};
  }

  /// True when a slice with the id of the flow stands where the flow does.
  [[nodiscard]] bool repeats(const OpenEvent& flow) const {
    const auto behind = std::ranges::upper_bound(
        rows_, std::tuple(flow.correlation, flow.track, flow.at), {},
        [&](SliceIndex i) { return std::tuple(slice(i).correlation, slice(i).track, slice(i).begin); });
    auto it = behind;
    for (int steps = 0; it != rows_.begin() && steps < kMostSteps; ++steps) {
      const Slice& s = slice(*--it);
      if (s.correlation != flow.correlation || s.track != flow.track) return false;
      if (s.end() >= flow.at) return true;
    }
    return false;
  }

 private:
  static constexpr int kMostSteps = 64;
  [[nodiscard]] const Slice& slice(SliceIndex i) const { return trace_.slices[i]; }

  const Trace& trace_;
  std::vector<SliceIndex> rows_;
};

/// One end of a flow and the slice that it starts, passes or ends at.
struct FlowEnd {
  const OpenEvent* event;
  SliceIndex slice;
};

FlowKind kind_of(std::string_view category) {
  if (category == "ac2g") return FlowKind::host_to_device;
  if (category == "fwdbwd") return FlowKind::forward_backward;
  return category.starts_with("async") ? FlowKind::async : FlowKind::other;
}

/// What one arrow says, unless the correlation id has said it.
void connect(Trace& trace, const Flow& flow) {
  const Slice& target = trace.slices[flow.to];
  if (flow.kind == FlowKind::host_to_device && target.gpu != kNone) {
    GpuSlice& gpu = trace.gpu[target.gpu];
    if (gpu.launcher == kNone && is_launch(trace, trace.slices[flow.from])) gpu.launcher = flow.from;
    if (gpu.launcher == flow.from) return;
  }
  trace.flows.push_back(flow);
}

/// The ends of one flow in order. The end that a correlation id repeats is not among them (Carriers::repeats): where
/// only one end is left, the slices with that id are the other.
void connect_ends(Trace& trace, const Carriers& carriers, std::span<const FlowEnd> ends, FlowKind kind) {
  const std::uint32_t id = ends.front().event->correlation;
  SliceIndex from = kNone;
  if (id != 0 && ends.front().event->phase != 's')
    for (const SliceIndex i : carriers.of(id))
      if (is_launch(trace, trace.slices[i]) && (from == kNone || launches_before(trace, i, from))) from = i;
  bool arrived = false;
  for (const FlowEnd& end : ends) {
    arrived = arrived || end.event->phase != 's';
    if (end.slice == kNone) {
      trace.losses.add(LossReason::flow_unbound);
      continue;
    }
    if (end.event->phase != 's' && from != kNone) connect(trace, {from, end.slice, kind});
    if (end.event->phase != 'f') from = end.slice;
  }
  if (id != 0 && !arrived && from != kNone)
    for (const SliceIndex i : carriers.of(id))
      if (const Slice& s = trace.slices[i]; s.gpu != kNone && trace.gpu[s.gpu].launcher == kNone)
        connect(trace, {from, i, kind});
}

}  // namespace

/// Links GPU work to the calls with its correlation id. From here on, no correlation id is the number of a call.
void TraceBuilder::link_launchers() {
  // Profilers number their calls one after another, so a plain table of ids is small; where they do not, only ids that
  // GPU work asks for are remembered.
  std::uint32_t lowest = kNone;
  std::uint32_t highest = 0;
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
    const std::uint32_t id = trace_.slices[trace_.gpu[g].slice].correlation;
    if (id == 0) continue;
    lowest = std::min(lowest, id);
    highest = std::max(highest, id);
  }
  const std::size_t range = highest == 0 ? 0 : std::size_t{highest} - lowest + 1;
  const bool dense = range <= 16 * trace_.gpu.size() + 1024;
  std::vector<SliceIndex> table(dense ? range : 0, kNone);
  tsl::hopscotch_map<std::uint32_t, SliceIndex, Hash> sparse;
  if (!dense) {
    sparse.reserve(trace_.gpu.size());
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
      sparse.try_emplace(trace_.slices[trace_.gpu[g].slice].correlation, kNone);
  }
  const auto launcher_of = [&](std::uint32_t id) -> SliceIndex* {
    if (dense) return id < lowest || id > highest ? nullptr : &table[id - lowest];
    auto it = sparse.find(id);
    return it == sparse.end() ? nullptr : &it.value();
  };
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
    Slice& slice = trace_.slices[i];
    if (slice.rank == kNumbered) slice.rank = 0, slice.correlation = 0;
    if (slice.correlation == 0 || !is_launch(trace_, slice)) continue;
    SliceIndex* launcher = launcher_of(slice.correlation);
    if (launcher == nullptr) continue;
    if (*launcher == kNone || launches_before(trace_, static_cast<SliceIndex>(i), *launcher))
      *launcher = static_cast<SliceIndex>(i);
  }
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
    const std::uint32_t id = trace_.slices[trace_.gpu[g].slice].correlation;
    if (id == 0) continue;
    if (const SliceIndex* launcher = launcher_of(id)) trace_.gpu[g].launcher = *launcher;
  }
}

void TraceBuilder::bind_flows() {
  tsl::hopscotch_set<std::uint32_t, Hash> ids;
  std::vector<FlowEnd> ends;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (!is_flow(open_[i].phase)) continue;
    ends.push_back({&open_[i], kNone});
    if (open_[i].correlation != 0) ids.insert(open_[i].correlation);
  }
  if (ends.empty()) return;
  const Carriers carriers(trace_, ids);
  std::erase_if(ends, [&](const FlowEnd& end) { return end.event->correlation != 0 && carriers.repeats(*end.event); });
  if (ends.empty()) return;
  const SliceOrder order = order_slices(trace_);

  // The innermost slice of the track that holds the moment: walk back from the last one that begins no later, over
  // slices that have ended, at most a bounded number of steps (slices of one track may overlap).
  for (FlowEnd& end : ends) {
    const OpenEvent& event = *end.event;
    const auto first = order.order.begin() + static_cast<std::ptrdiff_t>(order.track_begin[event.track]);
    const auto last = order.order.begin() + static_cast<std::ptrdiff_t>(order.track_begin[event.track + 1]);
    auto it = std::upper_bound(first, last, event.at, [&](Ns at, SliceIndex s) { return at < trace_.slices[s].begin; });
    for (int steps = 0; it != first && steps < 64 && end.slice == kNone; ++steps)
      if (trace_.slices[*--it].end() >= event.at) end.slice = *it;
  }
  const auto flow_of = [](const FlowEnd& end) { return std::pair(end.event->category, end.event->id); };
  std::ranges::sort(ends, {}, [&](const FlowEnd& end) {
    const OpenEvent& e = *end.event;
    const int place = e.phase == 's' ? 0 : e.phase == 't' ? 1 : 2;
    return std::tuple(e.category, e.id, e.at, place, e.track);
  });
  for (std::size_t first = 0, behind = 0; first < ends.size(); first = behind) {
    while (behind < ends.size() && flow_of(ends[behind]) == flow_of(ends[first])) ++behind;
    connect_ends(trace_, carriers, std::span(ends).subspan(first, behind - first),
                 kind_of(trace_.categories[ends[first].event->category].name));
  }
}

}  // namespace culprit
