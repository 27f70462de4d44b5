#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "trace/builder.h"

namespace culprit {

namespace {

/// Appends one rank to the run: ids are renumbered, times moved by `offset`.
void append(Trace& run, CategoryTable& table, Trace&& part, Ns offset) {
  std::vector<StringId> strings(part.strings.size());
  for (StringId i = 0; i < strings.size(); ++i) strings[i] = run.strings.intern(part.strings[i]);
  std::vector<CategoryId> categories(part.categories.size());
  for (std::size_t i = 0; i < categories.size(); ++i)
    categories[i] = table.number(run, part.categories[i].name, part.categories[i].slice_class);
  const auto rank_base = static_cast<std::uint16_t>(run.ranks.size());
  const auto process_base = static_cast<ProcessId>(run.processes.size());
  const auto track_base = static_cast<TrackId>(run.tracks.size());
  const auto slice_base = static_cast<SliceIndex>(run.slices.size());
  const auto gpu_base = static_cast<GpuIndex>(run.gpu.size());
  const auto extra_base = static_cast<std::uint32_t>(run.extras.size());
  const auto moved = [](std::uint32_t index, std::uint32_t base) { return index == kNone ? kNone : index + base; };

  for (std::size_t i = 0; i < part.slices.size(); ++i) {
    Slice s = part.slices[i];
    s.begin += offset;
    s.name = strings[s.name];
    s.track += track_base;
    s.category = categories[s.category];
    s.gpu = moved(s.gpu, gpu_base);
    s.extra = moved(s.extra, extra_base);
    s.rank = static_cast<std::uint16_t>(s.rank + rank_base);
    run.slices.push_back(s);
  }
  part.slices.clear();
  for (std::size_t i = 0; i < part.gpu.size(); ++i) {
    GpuSlice g = part.gpu[i];
    g.slice += slice_base;
    g.launcher = moved(g.launcher, slice_base);
    run.gpu.push_back(g);
  }
  for (std::size_t i = 0; i < part.extras.size(); ++i) {
    SliceExtra e = part.extras[i];
    e.collective = strings[e.collective];
    e.group = strings[e.group];
    run.extras.push_back(e);
  }
  for (std::size_t i = 0; i < part.metrics.size(); ++i) {
    const SliceMetric m = part.metrics[i];
    run.metrics.push_back({m.slice + slice_base, strings[m.name], m.value});
  }
  for (StreamWait wait : part.stream_waits) {
    wait.slice += slice_base;
    run.stream_waits.push_back(wait);
  }
  for (std::size_t i = 0; i < part.instants.size(); ++i) {
    const Instant in = part.instants[i];
    run.instants.push_back({in.at + offset, strings[in.name], in.track + track_base});
  }
  for (Process p : part.processes) {
    p.text = strings[p.text];
    p.host = strings[p.host];
    p.name = strings[p.name];
    p.labels = strings[p.labels];
    p.rank = static_cast<std::uint16_t>(p.rank + rank_base);
    run.processes.push_back(p);
  }
  for (Track t : part.tracks) {
    t.process += process_base;
    t.name = strings[t.name];
    run.tracks.push_back(t);
  }
  for (CounterSeries& series : part.counters) {
    series.name = strings[series.name];
    series.unit = strings[series.unit];
    series.process += process_base;
    series.track = moved(series.track, track_base);
    for (CounterSample& sample : series.samples) sample.at += offset;
    run.counters.push_back(std::move(series));
  }
  for (ThreadSched& thread : part.sched) {
    thread.track += track_base;
    for (auto* peers : {&thread.woken_by, &thread.ran_instead})
      for (SchedPeer& peer : *peers) peer.name = strings[peer.name];
    run.sched.push_back(std::move(thread));
  }
  for (RivalTotal total : part.rivals) {
    total.at += offset;
    total.track += track_base;
    total.name = strings[total.name];
    run.rivals.push_back(total);
  }
  for (CallTotal total : part.calls) {
    total.at += offset;
    total.name = strings[total.name];
    total.track += track_base;
    run.calls.push_back(total);
  }
  for (DiskTotal total : part.disks) {
    total.at += offset;
    total.disk = strings[total.disk];
    total.operation = strings[total.operation];
    total.process += process_base;
    run.disks.push_back(total);
  }
  for (DurationCounts& counts : part.durations) {
    counts.name = strings[counts.name];
    counts.disk = strings[counts.disk];
    counts.process += process_base;
    run.durations.push_back(std::move(counts));
  }
  const auto frame_base = static_cast<std::uint32_t>(run.stack_frames.size());
  for (std::size_t i = 0; i < part.stack_frames.size(); ++i) {
    const StackFrame& f = part.stack_frames[i];
    run.stack_frames.push_back({moved(f.caller, frame_base), strings[f.function], strings[f.module], f.kernel});
  }
  for (std::size_t i = 0; i < part.stack_samples.size(); ++i) {
    StackSample s = part.stack_samples[i];
    s.at += offset;
    s.track += track_base;
    s.frame = moved(s.frame, frame_base);
    s.waker = strings[s.waker];
    run.stack_samples.push_back(s);
  }
  for (const Flow& flow : part.flows) run.flows.push_back({flow.from + slice_base, flow.to + slice_base, flow.kind});
  for (Device& device : part.devices) {
    device.rank = static_cast<std::uint16_t>(device.rank + rank_base);
    run.devices.push_back(std::move(device));
  }
  for (Rank& rank : part.ranks) run.ranks.push_back(std::move(rank));
  run.losses.merge(part.losses);
}

Ns first_begin(const Trace& trace) {
  Ns first = std::numeric_limits<Ns>::max();
  for (std::size_t i = 0; i < trace.slices.size(); ++i) first = std::min(first, trace.slices[i].begin);
  return trace.slices.empty() ? 0 : first;
}

}  // namespace

Trace merge(std::vector<Trace> traces) {
  const auto number_of = [](const Trace& trace) { return trace.ranks.empty() ? -1 : trace.ranks.front().rank; };
  std::set<std::int64_t> numbers;
  for (const Trace& trace : traces) numbers.insert(number_of(trace));
  if (numbers.size() == traces.size() && !numbers.contains(-1)) std::ranges::sort(traces, {}, number_of);
  return merge_in_order(std::move(traces));
}

Trace merge_in_order(std::vector<Trace> traces) {
  if (traces.empty()) return {};
  if (traces.size() == 1) return std::move(traces.front());
  bool common = true;
  for (const Trace& trace : traces) common = common && trace.clock == "realtime";
  std::int64_t base = traces.front().base_ns;
  for (const Trace& trace : traces) base = std::min(base, trace.base_ns);

  Trace run;
  CategoryTable table;
  run.clock = common ? "realtime" : "unknown";
  run.base_ns = common ? base : 0;
  const Ns first = common ? 0 : first_begin(traces.front());
  if (!common) run.losses.add(LossReason::clock_unknown, traces.size() - 1);
  for (Trace& trace : traces) {
    const Ns offset = common ? trace.base_ns - base : first - first_begin(trace);
    append(run, table, std::move(trace), offset);
    trace = {};
  }
  return run;
}

}  // namespace culprit
