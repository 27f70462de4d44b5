#include "trace/builder.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "trace/call_order.h"

namespace culprit {

TraceBuilder::TraceBuilder(Rank rank) {
  trace_.ranks.push_back(std::move(rank));
  category({});
}

CategoryId TraceBuilder::category(std::string_view name) { return categories_.number(trace_, name); }

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
  keys_.push_back(key);
  track_ids_.emplace(key, id);
  return id;
}

SliceIndex TraceBuilder::add(const Slice& slice) {
  const auto index = static_cast<SliceIndex>(trace_.slices.size());
  trace_.slices.push_back(slice);
  return index;
}

void TraceBuilder::number_call(Slice& slice, std::uint32_t number) {
  if (slice.correlation != 0 || number == 0) return;
  slice.correlation = number;
  slice.rank = kNumbered;
}

SliceIndex TraceBuilder::add(const Slice& slice, const GpuSlice& gpu) {
  const SliceIndex index = add(slice);
  trace_.slices.back().gpu = static_cast<GpuIndex>(trace_.gpu.size());
  trace_.gpu.push_back(gpu);
  trace_.gpu.back().slice = index;
  Track& track = trace_.tracks[slice.track];
  // Where one track holds work of several streams, the lowest names it.
  const bool first = track.kind == TrackKind::thread;
  if (first || (track.kind == TrackKind::gpu_stream &&
                std::tuple(gpu.device, gpu.stream) < std::tuple(track.device, track.stream))) {
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

std::uint32_t TraceBuilder::frame(const StackFrame& frame) {
  const auto [found, added] = frame_ids_.try_emplace(frame, static_cast<std::uint32_t>(trace_.stack_frames.size()));
  if (added) trace_.stack_frames.push_back(frame);
  return found->second;
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

StringId TraceBuilder::better_name(StringId a, StringId b) const {
  const std::string_view x = trace_.strings[a];
  const std::string_view y = trace_.strings[b];
  return std::pair(x.size(), x) < std::pair(y.size(), y) ? b : a;
}

void TraceBuilder::name_thread(TrackId track, StringId name) {
  StringId& known = thread_names_[track];
  known = better_name(known, name);
  trace_.tracks[track].name = known;
}

void TraceBuilder::name_process(ProcessId process, StringId name) {
  StringId& known = trace_.processes[process].name;
  known = better_name(known, name);
}

void TraceBuilder::label_process(ProcessId process, StringId labels) {
  StringId& known = trace_.processes[process].labels;
  known = better_name(known, labels);
}

bool TraceBuilder::track_before(TrackId a, TrackId b) const {
  const TrackKey& x = keys_[a];
  const TrackKey& y = keys_[b];
  const auto text = [&](StringId id) { return trace_.strings[id]; };
  if (x.pid != y.pid) return x.pid < y.pid;
  if (x.pid_text != y.pid_text) return text(x.pid_text) < text(y.pid_text);
  if (x.kind != y.kind) return x.kind < y.kind;
  if (x.tid != y.tid) return x.tid < y.tid;
  return text(x.tid_text) < text(y.tid_text);
}

namespace {

/// Puts `rows` in the order of `before` (of row numbers); gives the new number of every row.
template <class Row, class Before>
std::vector<std::uint32_t> reorder(std::vector<Row>& rows, const Before& before) {
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, before);
  std::vector<std::uint32_t> number(rows.size());
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::uint32_t row : order) {
    number[row] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(rows[row]));
  }
  rows = std::move(sorted);
  return number;
}

}  // namespace

void TraceBuilder::number_rows() {
  const auto text = [&](StringId id) { return trace_.strings[id]; };
  const auto& processes = trace_.processes;
  const auto process = reorder(trace_.processes, [&](ProcessId a, ProcessId b) {
    return std::pair(processes[a].pid, text(processes[a].text)) < std::pair(processes[b].pid, text(processes[b].text));
  });
  const auto track = reorder(trace_.tracks, [&](TrackId a, TrackId b) { return track_before(a, b); });
  const auto& categories = trace_.categories;
  const auto category = reorder(trace_.categories, [&](std::size_t a, std::size_t b) {
    return std::pair(std::string_view(categories[a].name), a) < std::pair(std::string_view(categories[b].name), b);
  });
  for (Track& t : trace_.tracks) t.process = process[t.process];
  Ns latest = 0;
  CallOrder calls(trace_.tracks.size());
  for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
    Slice& slice = trace_.slices[i];
    slice.track = track[slice.track];
    slice.category = static_cast<CategoryId>(category[slice.category]);
    ++trace_.tracks[slice.track].slices;
    latest = std::max(latest, slice.begin);
    calls.see(slice, trace_.slice_class(slice));
  }
  calls.restore(trace_);
  for (std::size_t i = 0; i < trace_.instants.size(); ++i) trace_.instants[i].track = track[trace_.instants[i].track];
  for (std::size_t i = 0; i < open_.size(); ++i) {
    open_[i].track = track[open_[i].track];
    open_[i].category = static_cast<CategoryId>(category[open_[i].category]);
  }
  for (std::size_t i = 0; i < trace_.stack_samples.size(); ++i)
    trace_.stack_samples[i].track = track[trace_.stack_samples[i].track];
  for (ThreadSched& thread : trace_.sched) thread.track = track[thread.track];
  std::ranges::sort(trace_.sched, {}, &ThreadSched::track);
  for (RivalTotal& total : trace_.rivals) total.track = track[total.track];
  std::ranges::sort(trace_.rivals, {},
                    [](const RivalTotal& total) { return std::tuple(total.at, total.track, total.tid); });
  for (CallTotal& total : trace_.calls) total.track = track[total.track];
  std::ranges::sort(trace_.calls, {}, [&](const CallTotal& total) {
    return std::tuple(total.at, total.track, text(total.name), total.count, total.time);
  });
  for (DiskTotal& total : trace_.disks) total.process = process[total.process];
  std::ranges::sort(trace_.disks, {}, [&](const DiskTotal& total) {
    return std::tuple(total.at, text(total.disk), text(total.operation), total.process, total.count, total.time);
  });
  for (DurationCounts& counts : trace_.durations) counts.process = process[counts.process];
  std::ranges::sort(trace_.durations, {}, [&](const DurationCounts& counts) {
    return std::tuple(counts.process, text(counts.disk), text(counts.name));
  });
  for (CounterSeries& series : trace_.counters) {
    series.process = process[series.process];
    if (series.track != kNone) series.track = track[series.track];
    const auto key = [](const CounterSample& sample) { return std::pair(sample.at, sample.value); };
    if (!std::ranges::is_sorted(series.samples, {}, key)) std::ranges::sort(series.samples, {}, key);
  }
  std::ranges::sort(trace_.counters, {}, [&](const CounterSeries& series) {
    return std::tuple(text(series.name), series.process, series.track);
  });

  Rank& rank = trace_.ranks.front();
  if (rank.has_base) {
    trace_.base_ns = rank.base_ns;
    trace_.clock = "realtime";
  } else if (latest > kUnixTime) {
    trace_.clock = "realtime";
  }
}

Trace TraceBuilder::finish() && {
  pair_begin_end();
  pair_async();
  number_rows();
  link_launchers();
  bind_flows();
  open_.clear();
  for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
    if (trace_.gpu[g].launcher == kNone) trace_.losses.add(LossReason::gpu_without_launcher);
  return std::move(trace_);
}

}  // namespace culprit
