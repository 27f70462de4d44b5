#include "trace/builder.h"

#include <algorithm>

namespace culprit {

namespace {
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 32);
}
constexpr std::size_t kMaxCategories = 4096;
}  // namespace

std::size_t TraceBuilder::KeyHash::operator()(const TrackKey& key) const {
  const std::uint64_t numbers =
      mix(static_cast<std::uint64_t>(key.pid) * 0x9e3779b97f4a7c15ULL ^ static_cast<std::uint64_t>(key.tid));
  return mix(numbers ^ (static_cast<std::uint64_t>(key.pid_text) << 32 | key.tid_text) ^
             static_cast<std::uint64_t>(key.kind) << 60);
}

TraceBuilder::TraceBuilder(Rank rank) {
  trace_.ranks.push_back(std::move(rank));
  trace_.categories.push_back({});
  category_ids_.emplace(0, 0);
}

CategoryId TraceBuilder::category(std::string_view name) {
  const StringId text = intern(name);
  if (auto it = category_ids_.find(text); it != category_ids_.end()) return it->second;
  if (trace_.categories.size() >= kMaxCategories) return 0;
  const auto id = static_cast<CategoryId>(trace_.categories.size());
  trace_.categories.push_back({std::string(name), classify_category(name)});
  category_ids_.emplace(text, id);
  return id;
}

ProcessId TraceBuilder::process(std::int64_t pid, StringId pid_text) {
  const TrackKey key{.pid = pid, .pid_text = pid_text};
  if (auto it = process_ids_.find(key); it != process_ids_.end()) return it->second;
  const auto id = static_cast<ProcessId>(trace_.processes.size());
  Process process;
  process.pid = pid;
  process.text = pid_text;
  // "host(123)": the host stands before the number.
  if (pid_text != 0) {
    std::string_view text = trace_.strings[pid_text];
    if (const std::size_t open = text.find('('); open != std::string_view::npos && open > 0 && pid >= 0)
      process.host = trace_.strings.intern(text.substr(0, open));
  }
  trace_.processes.push_back(process);
  process_ids_.emplace(key, id);
  return id;
}

TrackId TraceBuilder::track(const TrackKey& key) {
  if (auto it = track_ids_.find(key); it != track_ids_.end()) return it->second;
  if (trace_.tracks.size() >= kMaxTracks) {
    trace_.losses.add(LossReason::tracks_collapsed);
    return static_cast<TrackId>(kMaxTracks - 1);
  }
  const auto id = static_cast<TrackId>(trace_.tracks.size());
  Track track;
  track.process = process(key.pid, key.pid_text);
  track.kind = key.kind;
  track.tid = key.tid;
  track.name = key.tid_text;
  trace_.tracks.push_back(track);
  track_ids_.emplace(key, id);
  return id;
}

SliceIndex TraceBuilder::add(const Slice& slice) {
  const auto index = static_cast<SliceIndex>(trace_.slices.size());
  trace_.slices.push_back(slice);
  return index;
}

SliceIndex TraceBuilder::add(const Slice& slice, const GpuSlice& gpu) {
  const SliceIndex index = add(slice);
  trace_.slices.back().gpu = static_cast<GpuIndex>(trace_.gpu.size());
  trace_.gpu.push_back(gpu);
  trace_.gpu.back().slice = index;
  Track& track = trace_.tracks[slice.track];
  if (track.kind == TrackKind::thread) {
    track.kind = TrackKind::gpu_stream;
    track.device = gpu.device;
    track.stream = gpu.stream;
  }
  return index;
}

std::uint32_t TraceBuilder::add(const SliceExtra& extra) {
  const auto index = static_cast<std::uint32_t>(trace_.extras.size());
  trace_.extras.push_back(extra);
  return index;
}

void TraceBuilder::add_counter(StringId name, ProcessId process, TrackId track, CounterSample sample) {
  const CounterKey key{name, process, track};
  auto it = counter_ids_.find(key);
  if (it == counter_ids_.end()) {
    it = counter_ids_.emplace(key, trace_.counters.size()).first;
    trace_.counters.push_back({name, process, track, {}});
  }
  trace_.counters[it->second].samples.push_back(sample);
}

void TraceBuilder::pair_begin_end() {
  std::vector<std::uint32_t> events;
  Ns last = 0;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (open_[i].phase == 'B' || open_[i].phase == 'E') events.push_back(static_cast<std::uint32_t>(i));
  if (events.empty()) return;
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) last = std::max(last, trace_.slices[i].end());
  for (std::uint32_t i : events) last = std::max(last, open_[i].at);
  std::ranges::stable_sort(events, [&](std::uint32_t a, std::uint32_t b) {
    const OpenEvent& x = open_[a];
    const OpenEvent& y = open_[b];
    return x.track != y.track ? x.track < y.track : x.at < y.at;
  });
  std::vector<std::uint32_t> stack;
  const auto close = [&](std::uint32_t i, Ns end) {
    const OpenEvent& b = open_[i];
    Slice slice;
    slice.begin = b.at;
    slice.duration = std::min(end - b.at, kMaxDuration);
    slice.name = b.name;
    slice.track = b.track;
    slice.category = b.category;
    slice.correlation = b.correlation;
    add(slice);
  };
  for (std::size_t k = 0; k < events.size(); ++k) {
    const OpenEvent& event = open_[events[k]];
    if (event.phase == 'B') {
      stack.push_back(events[k]);
    } else if (stack.empty()) {
      trace_.losses.add(LossReason::end_without_begin);
    } else {
      close(stack.back(), event.at);
      stack.pop_back();
    }
    if (k + 1 == events.size() || open_[events[k + 1]].track != event.track) {
      trace_.losses.add(LossReason::begin_without_end, stack.size());
      for (; !stack.empty(); stack.pop_back()) close(stack.back(), last);
    }
  }
}

void TraceBuilder::pair_async() {
  std::vector<std::uint32_t> events;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const char phase = open_[i].phase;
    if (phase == 'b' || phase == 'e') events.push_back(static_cast<std::uint32_t>(i));
    if (phase == 'n') add(Instant{open_[i].at, open_[i].name, open_[i].track});
  }
  std::ranges::stable_sort(events, [&](std::uint32_t a, std::uint32_t b) {
    const OpenEvent& x = open_[a];
    const OpenEvent& y = open_[b];
    if (x.id != y.id) return x.id < y.id;
    if (x.name != y.name) return x.name < y.name;
    return x.at < y.at;
  });
  // Same id and name: begins nest, an end closes the latest begin.
  std::vector<std::uint32_t> stack;
  for (std::size_t k = 0; k < events.size(); ++k) {
    const OpenEvent& event = open_[events[k]];
    if (event.phase == 'b') {
      stack.push_back(events[k]);
    } else if (stack.empty()) {
      trace_.losses.add(LossReason::end_without_begin);
    } else {
      const OpenEvent& b = open_[stack.back()];
      stack.pop_back();
      const Track& home = trace_.tracks[b.track];
      const Process& process = trace_.processes[home.process];
      Slice slice;
      slice.begin = b.at;
      slice.duration = std::min(event.at - b.at, kMaxDuration);
      slice.name = b.name;
      slice.category = b.category;
      slice.track = track({.pid = process.pid,
                           .tid = home.tid,
                           .pid_text = process.text,
                           .tid_text = home.name,
                           .kind = TrackKind::async});
      add(slice);
    }
    if (k + 1 == events.size() || open_[events[k + 1]].id != event.id || open_[events[k + 1]].name != event.name) {
      trace_.losses.add(LossReason::begin_without_end, stack.size());
      stack.clear();
    }
  }
}

void TraceBuilder::link_launchers() {
  if (trace_.gpu.empty()) return;
  const auto launches = [&](const Slice& slice) {
    return slice.correlation != 0 && slice.gpu == kNone && is_host_api(trace_.slice_class(slice));
  };
  // Profilers number launches one after another, so a plain table of ids is small; where they do not, only ids that GPU
  // work asks for are remembered.
  std::uint32_t lowest = kNone;
  std::uint32_t highest = 0;
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
    const std::uint32_t id = trace_.slices[trace_.gpu[g].slice].correlation;
    if (id == 0) continue;
    lowest = std::min(lowest, id);
    highest = std::max(highest, id);
  }
  if (highest == 0) return;
  const std::size_t range = std::size_t{highest} - lowest + 1;
  const bool dense = range <= 4 * trace_.gpu.size() + 1024;
  std::vector<SliceIndex> table(dense ? range : 0, kNone);
  tsl::hopscotch_map<std::uint32_t, SliceIndex> sparse;
  if (!dense)
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
      sparse.try_emplace(trace_.slices[trace_.gpu[g].slice].correlation, kNone);
  const auto launcher_of = [&](std::uint32_t id) -> SliceIndex* {
    if (dense) return id < lowest || id > highest ? nullptr : &table[id - lowest];
    auto it = sparse.find(id);
    return it == sparse.end() ? nullptr : &it.value();
  };
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
    const Slice& slice = trace_.slices[i];
    if (!launches(slice)) continue;
    SliceIndex* launcher = launcher_of(slice.correlation);
    if (launcher == nullptr) continue;
    // A runtime call and the driver call inside it may share the id: the outer one launched.
    if (*launcher == kNone ||
        (slice.begin <= trace_.slices[*launcher].begin && slice.end() >= trace_.slices[*launcher].end()))
      *launcher = static_cast<SliceIndex>(i);
  }
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
    const std::uint32_t id = trace_.slices[trace_.gpu[g].slice].correlation;
    if (id == 0) continue;
    if (const SliceIndex* launcher = launcher_of(id)) trace_.gpu[g].launcher = *launcher;
  }
}

void TraceBuilder::bind_flows() {
  std::vector<std::uint32_t> events;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (const char p = open_[i].phase; p == 's' || p == 't' || p == 'f')
      events.push_back(static_cast<std::uint32_t>(i));
  if (events.empty()) return;
  const SliceOrder order = order_slices(trace_);

  // The innermost slice of the track that holds the moment: walk back from the last one that begins no later, over
  // slices that have ended, at most a bounded number of steps (slices of one track may overlap).
  const auto enclosing = [&](const OpenEvent& event) -> SliceIndex {
    const auto first = order.order.begin() + static_cast<std::ptrdiff_t>(order.track_begin[event.track]);
    const auto last = order.order.begin() + static_cast<std::ptrdiff_t>(order.track_begin[event.track + 1]);
    auto it = std::upper_bound(first, last, event.at, [&](Ns at, SliceIndex s) { return at < trace_.slices[s].begin; });
    for (int steps = 0; it != first && steps < 64; ++steps) {
      --it;
      if (trace_.slices[*it].end() >= event.at) return *it;
    }
    return kNone;
  };

  std::ranges::stable_sort(events, [&](std::uint32_t a, std::uint32_t b) {
    const OpenEvent& x = open_[a];
    const OpenEvent& y = open_[b];
    if (x.category != y.category) return x.category < y.category;
    if (x.id != y.id) return x.id < y.id;
    if (x.at != y.at) return x.at < y.at;
    return x.phase == 's' && y.phase != 's';
  });
  SliceIndex from = kNone;
  for (std::size_t k = 0; k < events.size(); ++k) {
    const OpenEvent& event = open_[events[k]];
    const bool first_of_flow =
        k == 0 || open_[events[k - 1]].id != event.id || open_[events[k - 1]].category != event.category;
    if (first_of_flow) from = kNone;
    const SliceIndex here = enclosing(event);
    if (here == kNone) {
      trace_.losses.add(LossReason::flow_unbound);
      continue;
    }
    if (event.phase != 's' && from != kNone) {
      const std::string_view kind = trace_.categories[event.category].name;
      Flow flow{from, here, FlowKind::other};
      if (kind == "ac2g")
        flow.kind = FlowKind::host_to_device;
      else if (kind == "fwdbwd")
        flow.kind = FlowKind::forward_backward;
      else if (kind.starts_with("async"))
        flow.kind = FlowKind::async;
      const Slice& target = trace_.slices[here];
      bool keep = true;
      if (flow.kind == FlowKind::host_to_device && target.gpu != kNone) {
        GpuSlice& gpu = trace_.gpu[target.gpu];
        if (gpu.launcher == kNone && is_host_api(trace_.slice_class(trace_.slices[from]))) gpu.launcher = from;
        keep = gpu.launcher != from;
      }
      if (keep) trace_.flows.push_back(flow);
    }
    if (event.phase != 'f') from = here;
  }
}

Trace TraceBuilder::finish() && {
  pair_begin_end();
  pair_async();
  link_launchers();
  bind_flows();
  open_.clear();
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
    if (trace_.gpu[g].launcher == kNone) trace_.losses.add(LossReason::gpu_without_launcher);
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) ++trace_.tracks[trace_.slices[i].track].slices;
  for (CounterSeries& series : trace_.counters) std::ranges::stable_sort(series.samples, {}, &CounterSample::at);
  Rank& rank = trace_.ranks.front();
  if (rank.has_base) {
    trace_.base_ns = rank.base_ns;
    trace_.clock = "realtime";
  } else if (!trace_.slices.empty()) {
    // Old profilers write Unix microseconds without a base: between 2005 and 2065 it is taken for that.
    const Ns at = trace_.slices[0].begin;
    if (at > 1'100'000'000'000'000'000) trace_.clock = "realtime";
  }
  return std::move(trace_);
}

}  // namespace culprit
