#include "trace/call_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "trace/sort_runs.h"

namespace culprit {

namespace {

constexpr std::size_t kMostTracks = std::size_t{64} << 10;

bool called_before(const Trace& trace, const Slice& x, const Slice& y) {
  if (x.correlation != y.correlation) return x.correlation < y.correlation;
  if (x.name != y.name) return trace.name(x) < trace.name(y);
  if (x.category != y.category) return trace.categories[x.category].name < trace.categories[y.category].name;
  const auto gpu = [&](const Slice& s) {
    const GpuSlice g = s.gpu == kNone ? GpuSlice{} : trace.gpu[s.gpu];
    return std::tuple(g.device, g.stream, g.context, g.bytes, g.registers, g.shared_memory, g.grid[0], g.grid[1],
                      g.grid[2], g.block[0], g.block[1], g.block[2]);
  };
  if (gpu(x) != gpu(y)) return gpu(x) < gpu(y);
  const auto extra = [&](const Slice& s) {
    const SliceExtra e = s.extra == kNone ? SliceExtra{} : trace.extras[s.extra];
    return std::tuple(e.sequence, e.elements, e.forward_thread, e.graph_node, trace.strings[e.collective],
                      trace.strings[e.group]);
  };
  return extra(x) < extra(y);
}

}  // namespace

CallOrder::CallOrder(std::size_t tracks)
    : seen_(tracks <= kMostTracks ? tracks * kSliceClasses : 0), unordered_(tracks > kMostTracks) {}

/// Rows by class and track, for those that are not in order; every list sorted by begin and end.
std::vector<std::vector<SliceIndex>> CallOrder::unordered_rows(const Trace& trace) const {
  std::vector<std::vector<SliceIndex>> groups;
  tsl::hopscotch_map<std::size_t, std::size_t, Hash> numbers;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& s = trace.slices[i];
    const std::size_t group = group_of(s, trace.slice_class(s));
    if (!seen_.empty() && !seen_[group].unordered) continue;
    const auto [it, added] = numbers.try_emplace(group, groups.size());
    if (added) groups.emplace_back();
    groups[it->second].push_back(static_cast<SliceIndex>(i));
  }
  for (auto& rows : groups)
    sort_runs(rows.begin(), rows.end(), [&](SliceIndex a, SliceIndex b) {
      const Slice& x = trace.slices[a];
      const Slice& y = trace.slices[b];
      if (x.begin != y.begin) return x.begin < y.begin;
      return x.duration != y.duration ? x.duration < y.duration : a < b;
    });
  return groups;
}

void CallOrder::restore(Trace& trace) const {
  if (!unordered_) return;
  tsl::hopscotch_map<SliceIndex, SliceIndex, Hash> moved;
  std::vector<Slice> alike;
  std::vector<std::size_t> order;
  const auto one_span = [&](SliceIndex a, SliceIndex b) {
    return trace.slices[a].begin == trace.slices[b].begin && trace.slices[a].duration == trace.slices[b].duration;
  };
  for (const std::vector<SliceIndex>& rows : unordered_rows(trace)) {
    for (std::size_t first = 0, behind = 0; first < rows.size(); first = behind) {
      for (behind = first + 1; behind < rows.size() && one_span(rows[behind], rows[first]);) ++behind;
      if (behind == first + 1) continue;
      alike.clear();
      for (std::size_t k = first; k < behind; ++k) alike.push_back(trace.slices[rows[k]]);
      order.resize(alike.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order,
                               [&](std::size_t a, std::size_t b) { return called_before(trace, alike[a], alike[b]); });
      for (std::size_t k = 0; k < order.size(); ++k) {
        if (order[k] == k) continue;
        trace.slices[rows[first + k]] = alike[order[k]];
        moved[rows[first + order[k]]] = rows[first + k];
      }
    }
  }
  if (moved.empty()) return;
  const auto row_now = [&](SliceIndex row) {
    const auto it = moved.find(row);
    return it == moved.end() ? row : it->second;
  };
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) trace.gpu[g].slice = row_now(trace.gpu[g].slice);
  std::vector<SliceMetric> metrics(trace.metrics.size());
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    metrics[m] = trace.metrics[m];
    metrics[m].slice = row_now(metrics[m].slice);
  }
  std::ranges::stable_sort(metrics, {}, &SliceMetric::slice);
  for (std::size_t m = 0; m < metrics.size(); ++m) trace.metrics[m] = metrics[m];
  for (StreamWait& wait : trace.stream_waits) wait.slice = row_now(wait.slice);
  std::ranges::sort(trace.stream_waits, {}, &StreamWait::slice);
}

}  // namespace culprit
