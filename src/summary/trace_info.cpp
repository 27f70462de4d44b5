#include "summary/trace_info.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/intervals.h"
#include "core/saturating.h"
#include "cycles/name_hints.h"
#include "summary/sched_info.h"
#include "trace/span.h"

namespace culprit::summary {

namespace {

using DeviceKey = std::pair<std::uint16_t, std::int32_t>;  // row of Trace::ranks, device

constexpr std::size_t kMaxMarkers = 20;
constexpr std::uint64_t kMinRepetitions = 3;

void count(model::CountAndSum& total, Ns duration) {
  ++total.count;
  total.sum = add_saturating(total.sum, duration);
}

std::int64_t rank_number(const Trace& trace, std::uint16_t row) {
  return row < trace.ranks.size() && trace.ranks[row].rank >= 0 ? trace.ranks[row].rank : row;
}

/// Processes but those of which only the CPU time beside the recorded ones is known.
std::size_t recorded_processes(const Trace& trace) {
  std::vector<bool> has_track(trace.processes.size());
  for (const Track& track : trace.tracks) has_track[track.process] = true;
  std::set<ProcessId> beside;
  const StringId other = trace.strings.find("other.cpu", kNone);
  for (const CounterSeries& series : trace.counters)
    if (series.name == other && !has_track[series.process]) beside.insert(series.process);
  return trace.processes.size() - beside.size();
}

std::vector<model::JoinedFile> joined_of(const Rank& rank) {
  std::vector<model::JoinedFile> files;
  files.reserve(rank.recordings.size());
  for (const RecordingFile& file : rank.recordings)
    files.push_back({file.path, file.format, file.input_bytes, file.text_bytes, file.events});
  return files;
}

void add_structure(const Trace& trace, model::TraceInfo& info) {
  info.clock = trace.clock;
  info.base_ns = trace.base_ns;
  info.slices = trace.slices.size();
  info.instants = trace.instants.size();
  info.processes = recorded_processes(trace);
  std::vector<bool> is_name(trace.strings.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) is_name[trace.slices[i].name] = true;
  info.names = static_cast<std::size_t>(std::ranges::count(is_name, true));
  std::set<std::pair<ProcessId, std::int64_t>> scheduled;
  for (const Track& track : trace.tracks)
    if (track.kind == TrackKind::sched) scheduled.emplace(track.process, track.tid);
  info.threads = scheduled.size();
  for (const Track& track : trace.tracks) {
    if (track.kind == TrackKind::thread && !scheduled.contains({track.process, track.tid})) ++info.threads;
    if (track.kind == TrackKind::gpu_stream) ++info.streams;
    if (track.kind == TrackKind::async) ++info.async_tracks;
  }
  for (const Rank& r : trace.ranks)
    info.ranks.push_back({r.path, r.host, r.backend, r.schema, r.rank, r.world_size, r.input_bytes, r.text_bytes,
                          r.events, r.format, r.unread_tables, r.metadata, joined_of(r)});
  for (const CounterSeries& series : trace.counters) {
    model::CounterInfo counter{std::string(trace.strings[series.name]), series.samples.size()};
    if (!series.samples.empty()) {
      const auto [low, high] = std::ranges::minmax(series.samples, {}, &CounterSample::value);
      counter.min = low.value;
      counter.max = high.value;
      double sum = 0;
      for (const CounterSample& sample : series.samples) sum += sample.value;
      counter.mean = sum / static_cast<double>(series.samples.size());
    }
    counter.unit = trace.strings[series.unit];
    if (const Process& process = trace.processes[series.process]; series.unit != 0 && process.pid >= 0)
      counter.of = fmt::format("{} ({})", trace.strings[process.name], process.pid);
    info.counters.push_back(std::move(counter));
  }
  for (const Flow& flow : trace.flows) {
    switch (flow.kind) {
      case FlowKind::host_to_device:
        ++info.flows_host_to_device;
        break;
      case FlowKind::async:
        ++info.flows_async;
        break;
      case FlowKind::forward_backward:
        ++info.flows_forward_backward;
        break;
      case FlowKind::other:
        ++info.flows_other;
        break;
    }
  }
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const auto reason = static_cast<LossReason>(i);
    if (trace.losses[reason] == 0) continue;
    const LossInfo& loss = culprit::info(reason);
    info.losses.push_back({std::string(loss.name), std::string(to_string(loss.severity)), std::string(loss.meaning),
                           std::string(loss.remedy), std::string(trace.losses.first_seen(reason)),
                           trace.losses[reason]});
  }
}

void add_markers(const Trace& trace, const std::vector<model::CountAndSum>& annotations, model::TraceInfo& info) {
  std::map<std::string, model::CountAndSum> patterns;
  for (std::size_t name = 0; name < annotations.size(); ++name) {
    if (annotations[name].count == 0) continue;
    model::CountAndSum& total = patterns[cycles::pattern_of(trace.strings[static_cast<StringId>(name)], 'N')];
    total.count += annotations[name].count;
    total.sum = add_saturating(total.sum, annotations[name].sum);
  }
  for (const auto& [pattern, total] : patterns)
    if (total.count >= kMinRepetitions) info.markers.push_back({pattern, total});
  // A profiler's step is a marker before anything else; among the others the one that covers most time.
  std::ranges::stable_sort(info.markers, [](const model::MarkerInfo& a, const model::MarkerInfo& b) {
    const auto rank = [](const model::MarkerInfo& m) {
      return std::tuple(!m.pattern.starts_with("ProfilerStep"), -m.slices.sum);
    };
    return rank(a) < rank(b);
  });
  if (info.markers.size() > kMaxMarkers) info.markers.resize(kMaxMarkers);
}

void add_gpu(const Trace& trace, model::TraceInfo& info) {
  std::map<DeviceKey, std::vector<Interval>> spans;
  std::map<DeviceKey, model::CountAndSum> work;
  std::map<DeviceKey, std::set<std::int32_t>> streams;
  std::vector<model::CountAndSum> kernels(trace.strings.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const SliceClass slice_class = trace.slice_class(slice);
    if (!is_gpu_work(slice_class)) continue;
    const GpuSlice* gpu = slice.gpu == kNone ? nullptr : &trace.gpu[slice.gpu];
    const Track& track = trace.tracks[slice.track];
    const DeviceKey key{slice.rank, gpu != nullptr ? gpu->device : track.device};
    spans[key].push_back({slice.begin, slice.end()});
    count(work[key], slice.duration);
    streams[key].insert(gpu != nullptr ? gpu->stream : track.stream);
    if (gpu != nullptr && gpu->launcher != kNone) ++info.launched;
    if (slice_class == SliceClass::kernel) {
      count(info.kernels, slice.duration);
      count(kernels[slice.name], slice.duration);
    } else {
      count(slice_class == SliceClass::memcpy ? info.memcpy : info.memset, slice.duration);
    }
  }
  for (std::size_t name = 0; name < kernels.size(); ++name) {
    if (kernels[name].count == 0) continue;
    ++info.unique_kernels;
    if (info.top.count == 0 || kernels[name].sum > info.top.sum) {
      info.top = kernels[name];
      info.top_name = trace.strings[static_cast<StringId>(name)];
    }
  }

  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {  // devices that the trace names but that did nothing
    for (const Device& device : trace.devices)
      if (device.rank == r) work.try_emplace({static_cast<std::uint16_t>(r), device.id});
  }
  for (const auto& entry : work) {
    const auto& key = entry.first;
    const auto& total = entry.second;
    model::DeviceInfo device;
    device.rank = rank_number(trace, key.first);
    device.device = key.second;
    const auto known =
        std::ranges::find_if(trace.devices, [&](const Device& d) { return d.rank == key.first && d.id == key.second; });
    if (known != trace.devices.end()) {
      device.name = known->name;
      device.memory_bytes = known->memory_bytes;
      device.multiprocessors = known->multiprocessors;
    }
    device.gpu_work = total;
    device.streams = streams[key].size();
    device.busy_union = union_length(spans[key]);
    info.devices.push_back(std::move(device));
  }
  std::vector<Interval> all;
  if (spans.size() == 1) {
    all = std::move(spans.begin()->second);
  } else {
    for (auto& [key, part] : spans) all.insert(all.end(), part.begin(), part.end());
  }
  info.busy_union = union_length(all);
}

}  // namespace

model::TraceInfo trace_info(const Trace& trace) {
  model::TraceInfo info;
  add_structure(trace, info);
  Ns first = std::numeric_limits<Ns>::max();
  Ns last = std::numeric_limits<Ns>::min();
  std::vector<model::CountAndSum> annotations(trace.strings.size());
  std::vector<model::CountAndSum> categories(trace.categories.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    first = std::min(first, slice.begin);
    last = std::max(last, slice.end());
    count(categories[slice.category], slice.duration);
    if (trace.slice_class(slice) == SliceClass::annotation) count(annotations[slice.name], slice.duration);
  }
  if (trace.slices.empty())
    for (const CounterSeries& series : trace.counters)
      for (const CounterSample& sample : series.samples) {
        first = std::min(first, sample.at);
        last = std::max(last, sample.at);
      }
  if (first <= last) {
    info.begin = first;
    info.duration = add_saturating(last, -first);
  }
  if (records_scheduling(trace)) {
    const Interval span = recorded_span(trace);
    info.begin = span.begin;
    info.duration = subtract_saturating(span.end, span.begin);
  }
  for (std::size_t c = 0; c < categories.size(); ++c) {
    if (categories[c].count == 0) continue;
    info.categories.push_back(
        {trace.categories[c].name, std::string(to_string(trace.categories[c].slice_class)), categories[c]});
  }
  std::ranges::stable_sort(info.categories, std::ranges::greater{},
                           [](const model::CategoryInfo& c) { return c.slices.sum; });
  add_markers(trace, annotations, info);
  add_gpu(trace, info);
  info.sched = sched_info(trace);
  return info;
}

}  // namespace culprit::summary
