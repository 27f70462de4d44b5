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

constexpr int kMostSteps = 64;  // back from where a slice could begin

/// Slices that carry one of certain correlation ids, by id, track and begin.
class Carriers {
 public:
  Carriers(const Trace& trace, const tsl::hopscotch_set<std::uint32_t, Hash>& ids) {
    if (ids.empty()) return;
    const auto [lowest, highest] = std::ranges::minmax(ids);  // most slices need no look-up
    for (std::size_t i = 0; i < trace.slices.size(); ++i)
      if (const Slice& s = trace.slices[i]; s.correlation >= lowest && s.correlation <= highest)
        if (ids.contains(s.correlation))
          rows_.push_back({s.correlation, s.track, s.begin, s.end(), static_cast<SliceIndex>(i)});
    std::ranges::sort(rows_, [&](const Row& a, const Row& b) {
      if (a.id != b.id) return a.id < b.id;
      if (a.track != b.track) return a.track < b.track;
      if (a.begin != b.begin) return a.begin < b.begin;
      return stands_before(trace, a.slice, b.slice);
    });
  }

  /// A slice with what it is found by, so that looking for one stays within these rows.
  struct Row {
    std::uint32_t id;
    TrackId track;
    Ns begin;
    Ns end;
    SliceIndex slice;
  };

  /// All slices with the id.
  [[nodiscard]] std::span<const Row> of(std::uint32_t id) const {
    return {std::ranges::lower_bound(rows_, id, {}, &Row::id), std::ranges::upper_bound(rows_, id, {}, &Row::id)};
  }

  /// True when a slice with the id of the flow stands where the flow does.
  [[nodiscard]] bool repeats(const OpenEvent& flow) const {
    auto it = std::ranges::upper_bound(rows_, std::tuple(flow.correlation, flow.track, flow.at), {},
                                       [](const Row& row) { return std::tuple(row.id, row.track, row.begin); });
    for (int steps = 0; it != rows_.begin() && steps < kMostSteps; ++steps) {
      --it;
      if (it->id != flow.correlation || it->track != flow.track) return false;
      if (it->end >= flow.at) return true;
    }
    return false;
  }

 private:
  std::vector<Row> rows_;
};

/// One end of a flow and the slice that it starts, passes or ends at.
struct FlowEnd {
  explicit FlowEnd(const OpenEvent& event)
      : id(event.id),
        at(event.at),
        track(event.track),
        correlation(event.correlation),
        category(event.category),
        place(event.phase == 's'   ? 0
              : event.phase == 't' ? 1
                                   : 2) {}

  [[nodiscard]] bool is_first() const { return place == 0; }
  [[nodiscard]] bool is_last() const { return place == 2; }
  /// Ends of one flow stand together, in the order of the arrow.
  bool operator<(const FlowEnd& other) const {
    if (category != other.category) return category < other.category;
    if (id != other.id) return id < other.id;
    if (at != other.at) return at < other.at;
    return place != other.place ? place < other.place : track < other.track;
  }

  std::uint64_t id;
  Ns at;
  TrackId track;
  std::uint32_t correlation;
  SliceIndex slice = kNone;
  CategoryId category;
  std::uint8_t place;
};

/// Finds the innermost slice of a track that holds a moment: walks back from the last one that begins no later, over
/// slices that have ended, at most a bounded number of steps (slices of one track may overlap).
class SliceFinder {
 public:
  explicit SliceFinder(const Trace& trace)
      : trace_(trace),
        order_(order_slices(trace)),
        last_found_(order_.track_begin.begin(), order_.track_begin.end() - 1) {}

  SliceIndex at(TrackId track, Ns at) {
    const std::uint64_t first = order_.track_begin[track];
    std::uint64_t behind = behind_of(first, order_.track_begin[track + 1], last_found_[track], at);
    last_found_[track] = behind;
    for (int steps = 0; behind != first && steps < kMostSteps; ++steps)
      if (const SliceIndex slice = order_.order[--behind]; trace_.slices[slice].end() >= at) return slice;
    return kNone;
  }

 private:
  /// The first of the track that begins later. Events come nearly in the order of time, so it is looked for from where
  /// the last one was, in steps that double.
  [[nodiscard]] std::uint64_t behind_of(std::uint64_t first, std::uint64_t last, std::uint64_t near, Ns at) const {
    const auto begins_later = [&](std::uint64_t k) { return at < trace_.slices[order_.order[k]].begin; };
    std::uint64_t low = first;
    std::uint64_t high = last;
    if (near == last || begins_later(near)) {
      high = near;
      for (std::uint64_t step = 1; low < high; step *= 2) {
        const std::uint64_t k = high - std::min(step, high - low);
        if (!begins_later(k)) {
          low = k + 1;
          break;
        }
        high = k;
      }
    } else {
      low = near + 1;
      for (std::uint64_t step = 1; low < high; step *= 2) {
        const std::uint64_t k = low + std::min(step, high - low) - 1;
        if (begins_later(k)) {
          high = k;
          break;
        }
        low = k + 1;
      }
    }
    const auto begin = order_.order.begin();
    const auto it =
        std::upper_bound(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), at,
                         [&](Ns when, SliceIndex s) { return when < trace_.slices[s].begin; });
    return static_cast<std::uint64_t>(it - begin);
  }

  const Trace& trace_;
  SliceOrder order_;
  std::vector<std::uint64_t> last_found_;  // by track
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
  const std::uint32_t id = ends.front().correlation;
  SliceIndex from = kNone;
  if (id != 0 && !ends.front().is_first())
    for (const Carriers::Row& row : carriers.of(id))
      if (is_launch(trace, trace.slices[row.slice]) && (from == kNone || launches_before(trace, row.slice, from)))
        from = row.slice;
  bool arrived = false;
  for (const FlowEnd& end : ends) {
    arrived = arrived || !end.is_first();
    if (end.slice == kNone) {
      trace.losses.add(LossReason::flow_unbound);
      continue;
    }
    if (!end.is_first() && from != kNone) connect(trace, {from, end.slice, kind});
    if (!end.is_last()) from = end.slice;
  }
  if (id != 0 && !arrived && from != kNone)
    for (const Carriers::Row& row : carriers.of(id))
      if (const Slice& s = trace.slices[row.slice]; s.gpu != kNone && trace.gpu[s.gpu].launcher == kNone)
        connect(trace, {from, row.slice, kind});
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
  bool any = false;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (!is_flow(open_[i].phase)) continue;
    any = true;
    if (open_[i].correlation != 0) ids.insert(open_[i].correlation);
  }
  if (!any) return;
  const Carriers carriers(trace_, ids);
  std::vector<FlowEnd> ends;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (is_flow(open_[i].phase) && (open_[i].correlation == 0 || !carriers.repeats(open_[i])))
      ends.emplace_back(open_[i]);
  if (ends.empty()) return;
  SliceFinder slices(trace_);
  for (FlowEnd& end : ends) end.slice = slices.at(end.track, end.at);
  std::ranges::sort(ends, std::less<>());
  const auto is_one_flow = [](const FlowEnd& a, const FlowEnd& b) { return a.category == b.category && a.id == b.id; };
  for (std::size_t first = 0, behind = 0; first < ends.size(); first = behind) {
    while (behind < ends.size() && is_one_flow(ends[behind], ends[first])) ++behind;
    connect_ends(trace_, carriers, std::span(ends).subspan(first, behind - first),
                 kind_of(trace_.categories[ends[first].category].name));
  }
}

}  // namespace culprit
