// Begins and ends become slices.
#include <algorithm>
#include <tuple>

#include "trace/builder.h"

namespace culprit {

void TraceBuilder::close(const OpenEvent& begin, Ns end) {
  Slice slice;
  slice.begin = begin.at;
  slice.duration = std::min(end - begin.at, kMaxDuration);
  slice.name = begin.name;
  slice.track = begin.track;
  slice.category = begin.category;
  slice.correlation = begin.correlation;
  if (begin.phase == 'b') {
    TrackKey key = keys_[begin.track];
    key.kind = TrackKind::async;
    slice.track = track(key);
    slice.correlation = 0;
  }
  add(slice);
}

/// Begins and ends of one thread in order: an end closes the latest begin, whatever its name.
void TraceBuilder::pair_stack(std::span<const OpenIndex> events, Ns last) {
  std::vector<OpenIndex> stack;
  for (const OpenIndex i : events) {
    if (open_[i].phase == 'B') {
      stack.push_back(i);
    } else if (stack.empty()) {
      trace_.losses.add(LossReason::end_without_begin);
    } else {
      close(open_[stack.back()], open_[i].at);
      stack.pop_back();
    }
  }
  trace_.losses.add(LossReason::begin_without_end, stack.size());
  for (; !stack.empty(); stack.pop_back()) close(open_[stack.back()], last);
}

/// Begins and ends of one name, sorted by time: begins nest, and at any one moment what began earlier ends before
/// something begins.
void TraceBuilder::pair_named(std::span<OpenIndex> events, Ns last) {
  const auto begins = [&](OpenIndex i) { return open_[i].phase == 'B' || open_[i].phase == 'b'; };
  const auto stands_before = [&](OpenIndex a, OpenIndex b) {
    const OpenEvent& x = open_[a];
    const OpenEvent& y = open_[b];
    if (begins(a) != begins(b)) return begins(b);
    if (x.track != y.track) return track_before(x.track, y.track);
    return std::tuple(std::string_view(trace_.categories[x.category].name), x.correlation) <
           std::tuple(std::string_view(trace_.categories[y.category].name), y.correlation);
  };
  std::vector<OpenIndex> stack;
  for (std::size_t first = 0; first < events.size();) {
    const Ns now = open_[events[first]].at;
    std::size_t behind = first;
    std::size_t ends = 0;
    for (; behind < events.size() && open_[events[behind]].at == now; ++behind) ends += !begins(events[behind]);
    const auto moment = events.subspan(first, behind - first);
    if (moment.size() > 1) std::ranges::sort(moment, stands_before);
    const auto end_some = [&] {
      for (; ends > 0 && !stack.empty(); --ends) {
        close(open_[stack.back()], now);
        stack.pop_back();
      }
    };
    end_some();
    for (const OpenIndex i : moment)
      if (begins(i)) stack.push_back(i);
    end_some();
    trace_.losses.add(LossReason::end_without_begin, ends);
    first = behind;
  }
  trace_.losses.add(LossReason::begin_without_end, stack.size());
  for (; !stack.empty(); stack.pop_back()) close(open_[stack.back()], last);
}

/// True when every end has a name that some begin has too.
bool TraceBuilder::same_names(std::span<const OpenIndex> events) const {
  std::vector<StringId> begun;
  std::vector<StringId> ended;
  for (const OpenIndex i : events) (open_[i].phase == 'B' ? begun : ended).push_back(open_[i].name);
  for (auto* names : {&begun, &ended}) {
    std::ranges::sort(*names);
    names->erase(std::unique(names->begin(), names->end()), names->end());
  }
  return std::ranges::includes(begun, ended) && (ended.empty() || ended.front() != 0);
}

void TraceBuilder::pair_begin_end() {
  std::vector<OpenIndex> events;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (open_[i].phase == 'B' || open_[i].phase == 'E') events.push_back(static_cast<OpenIndex>(i));
  if (events.empty()) return;
  const Ns last = latest();
  std::ranges::stable_sort(events, {}, [&](OpenIndex i) { return std::pair(open_[i].track, open_[i].at); });
  for (std::size_t first = 0; first < events.size();) {
    std::size_t behind = first;
    while (behind < events.size() && open_[events[behind]].track == open_[events[first]].track) ++behind;
    const auto thread = std::span(events).subspan(first, behind - first);
    first = behind;
    if (!same_names(thread)) {
      pair_stack(thread, last);
      continue;
    }
    std::ranges::stable_sort(thread, {}, [&](OpenIndex i) { return open_[i].name; });
    for (std::size_t begin = 0, end = 0; begin < thread.size(); begin = end) {
      while (end < thread.size() && open_[thread[end]].name == open_[thread[begin]].name) ++end;
      pair_named(thread.subspan(begin, end - begin), last);
    }
  }
}

void TraceBuilder::pair_async() {
  std::vector<OpenIndex> events;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const char phase = open_[i].phase;
    if (phase == 'b' || phase == 'e') events.push_back(static_cast<OpenIndex>(i));
    if (phase == 'n') add(Instant{open_[i].at, open_[i].name, open_[i].track});
  }
  if (events.empty()) return;
  const Ns last = latest();
  const auto key = [&](OpenIndex i) { return std::pair(open_[i].id, open_[i].name); };
  std::ranges::sort(events, {}, [&](OpenIndex i) { return std::tuple(open_[i].id, open_[i].name, open_[i].at); });
  for (std::size_t first = 0, behind = 0; first < events.size(); first = behind) {
    while (behind < events.size() && key(events[behind]) == key(events[first])) ++behind;
    pair_named(std::span(events).subspan(first, behind - first), last);
  }
}

/// The end of the last slice, or the last begin or end.
Ns TraceBuilder::latest() const {
  Ns last = 0;
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) last = std::max(last, trace_.slices[i].end());
  for (std::size_t i = 0; i < open_.size(); ++i) last = std::max(last, open_[i].at);
  return last;
}

}  // namespace culprit
