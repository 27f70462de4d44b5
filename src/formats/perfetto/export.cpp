#include "formats/perfetto/export.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "formats/perfetto/track_events.h"
#include "formats/perfetto/writer.h"

namespace culprit::perfetto {

namespace {

constexpr std::int64_t kSynthetic = std::int64_t{1} << 30;
constexpr std::size_t kMostLanes = 1024;

bool is_linux_id(std::int64_t id) { return id > 0 && id < kSynthetic; }

class Exporter {
 public:
  Exporter(const Trace& trace, Writer& writer, Ns shift) : trace_(trace), writer_(writer), shift_(shift) {}

  void run() {
    facts();
    processes();
    threads();
    slices();
    calls();
    instants();
    for (const CounterSeries& series : trace_.counters) counter(series);
  }

 private:
  void facts() {
    const bool several = trace_.ranks.size() > 1;
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r)
      for (const auto& [key, value] : trace_.ranks[r].metadata)
        writer_.metadata(several ? fmt::format("rank{}.{}", r, key) : key, value);
  }

  [[nodiscard]] bool is_host(const Process& process) const {
    return process.pid < 0 && trace_.strings[process.text] == "host";
  }

  void processes() {
    std::set<std::int64_t> used;
    for (ProcessId id = 0; id < trace_.processes.size(); ++id) {
      const Process& process = trace_.processes[id];
      std::int64_t pid = 0;
      if (!is_host(process)) {
        pid = is_linux_id(process.pid) && used.insert(process.pid).second ? process.pid : kSynthetic + id;
        std::string name(trace_.strings[process.name != 0 ? process.name : process.text]);
        if (name.empty()) name = fmt::format("process {}", process.pid);
        ProcessInfo info;
        info.pid = pid;
        info.name = name;
        if (process.rank < trace_.ranks.size()) info.rank = trace_.ranks[process.rank].rank;
        writer_.process(info);
      }
      pids_.push_back(pid);
    }
  }

  void threads() {
    std::set<std::int64_t> used;
    tids_.assign(trace_.tracks.size(), 0);
    // A thread and what lies beside it (scheduling, asynchronous) have one number in the trace: they keep one.
    std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> known;
    for (TrackId id = 0; id < trace_.tracks.size(); ++id) {
      const Track& t = trace_.tracks[id];
      if (t.kind != TrackKind::thread) continue;
      const std::int64_t pid = pids_[t.process];
      std::int64_t tid = is_linux_id(t.tid) && used.insert(t.tid).second ? t.tid : kSynthetic + id;
      tids_[id] = tid;
      known.push_back({{pid, t.tid}, tid});
      std::string name(trace_.strings[t.name]);
      if (name.empty() && tid != t.tid) name = fmt::format("thread {}", t.tid);
      writer_.thread(pid, tid, name);
    }
    std::ranges::sort(known);
    for (TrackId id = 0; id < trace_.tracks.size(); ++id) {
      const Track& t = trace_.tracks[id];
      if (t.kind == TrackKind::thread || t.kind == TrackKind::gpu_stream || t.tid < 0) continue;
      const std::pair key(pids_[t.process], t.tid);
      const auto it = std::ranges::lower_bound(known, key, {}, &decltype(known)::value_type::first);
      if (it != known.end() && it->first == key)
        tids_[id] = it->second;
      else if (is_linux_id(t.tid))
        tids_[id] = t.tid;
    }
  }

  TrackUuid track(TrackId id, std::uint32_t lane) {
    const Track& t = trace_.tracks[id];
    const std::int64_t pid = pids_[t.process];
    const std::string_view name = trace_.strings[t.name];
    switch (t.kind) {
      case TrackKind::thread:
        if (lane == 0) return writer_.thread_track(pid, tids_[id]);
        return writer_.named_track(kOverlapTrack, pid, tids_[id], lane);
      case TrackKind::sched:
        return writer_.named_track(kSchedulingTrack, pid, tids_[id], lane);
      case TrackKind::gpu_stream:
        if (name.empty())
          return writer_.named_track(fmt::format("device {} stream {}", t.device, t.stream), pid, 0, lane);
        return writer_.named_track(name, pid, 0, lane);
      case TrackKind::async:
        break;
    }
    return writer_.named_track(name.empty() ? "async" : name, pid, tids_[id], lane);
  }

  /// Slices of a lane nest: it holds the ends of those that are open.
  struct Lane {
    TrackUuid uuid = 0;
    std::vector<Ns> ends;
    bool takes(const Slice& slice) {
      while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
      if (!ends.empty() && ends.back() < slice.end()) return false;
      ends.push_back(slice.end());
      return true;
    }
  };

  /// Arrows by the slices at their ends.
  void gather_flows() {
    for (std::size_t i = 0; i < trace_.flows.size(); ++i) {
      const Flow& flow = trace_.flows[i];
      flow_ends_.push_back({flow.from, {i + 1, false}, flow.kind});
      flow_ends_.push_back({flow.to, {i + 1, true}, flow.kind});
    }
    std::ranges::stable_sort(flow_ends_, {}, &FlowEnd::slice);
  }

  /// Those of one slice, into flows_; what kind they are becomes an argument.
  void flows_of(SliceIndex slice) {
    flows_.clear();
    auto end = std::ranges::lower_bound(flow_ends_, slice, {}, &FlowEnd::slice);
    for (; end != flow_ends_.end() && end->slice == slice; ++end) {
      if (flows_.empty() && !kind_name(end->kind).empty()) arguments_.push_back({kFlowArgument, kind_name(end->kind)});
      flows_.push_back(end->point);
    }
  }

  static std::string_view kind_name(FlowKind kind) {
    switch (kind) {
      case FlowKind::host_to_device:
        return "ac2g";
      case FlowKind::async:
        return "async";
      case FlowKind::forward_backward:
        return "fwdbwd";
      case FlowKind::other:
        break;
    }
    return {};
  }

  void slices() {
    gather_flows();
    const SliceOrder order = order_slices(trace_);
    for (TrackId id = 0; id < trace_.tracks.size(); ++id) {
      std::vector<Lane> lanes;
      for (std::uint64_t i = order.track_begin[id]; i < order.track_begin[id + 1]; ++i) {
        const Slice& slice = trace_.slices[order.order[i]];
        auto lane = std::ranges::find_if(lanes, [&](Lane& l) { return l.takes(slice); });
        if (lane == lanes.end() && lanes.size() < kMostLanes) {
          lanes.push_back({track(id, static_cast<std::uint32_t>(lanes.size())), {slice.end()}});
          lane = lanes.end() - 1;
        }
        // More at once than anyone can look at: the last lane's slices lose their exact ends in viewers.
        if (lane == lanes.end()) lane = lanes.end() - 1;
        arguments(slice);
        wait_of(order.order[i]);
        flows_of(order.order[i]);
        writer_.slice(lane->uuid, slice.begin + shift_, slice.end() + shift_, trace_.name(slice),
                      trace_.categories[slice.category].name, arguments_, flows_);
      }
    }
  }

  void arguments(const Slice& slice) {
    arguments_.clear();
    const auto put = [&](std::string_view key, auto value) {
      arguments_.push_back({key, static_cast<std::int64_t>(value)});
    };
    if (slice.correlation != 0) put("correlation", slice.correlation);
    if (slice.gpu != kNone) {
      const GpuSlice& gpu = trace_.gpu[slice.gpu];
      put("device", gpu.device);
      put("context", gpu.context);
      put("stream", gpu.stream);
      if (gpu.bytes != 0) put("bytes", gpu.bytes);
      if (gpu.registers != 0) put("registers per thread", gpu.registers);
      if (gpu.shared_memory != 0) put("shared memory", gpu.shared_memory);
      if (gpu.grid[0] != 0) {
        grid_ = fmt::format("[{},{},{}]", gpu.grid[0], gpu.grid[1], gpu.grid[2]);
        block_ = fmt::format("[{},{},{}]", gpu.block[0], gpu.block[1], gpu.block[2]);
        arguments_.push_back({"grid", std::string_view(grid_)});
        arguments_.push_back({"block", std::string_view(block_)});
      }
    }
    if (slice.extra == kNone) return;
    const SliceExtra& extra = trace_.extras[slice.extra];
    if (extra.sequence >= 0) put("Sequence number", extra.sequence);
    if (extra.forward_thread != 0) put("Fwd thread id", extra.forward_thread);
    if (extra.graph_node != 0) put("graph node id", extra.graph_node);
    if (extra.elements != 0) put("In msg nelems", extra.elements);
    if (extra.collective != 0) arguments_.push_back({"Collective name", trace_.strings[extra.collective]});
    if (extra.group != 0) arguments_.push_back({"Process Group Name", trace_.strings[extra.group]});
  }

  /// What a stream waits for.
  void wait_of(SliceIndex slice) {
    if (trace_.slice_class(trace_.slices[slice]) != SliceClass::gpu_sync) return;
    const auto wait = std::ranges::lower_bound(trace_.stream_waits, slice, {}, &StreamWait::slice);
    if (wait == trace_.stream_waits.end() || wait->slice != slice) return;
    const auto put = [&](std::string_view key, std::int64_t value) { arguments_.push_back({key, value}); };
    put("device", wait->device);
    put("stream", wait->stream);
    if (wait->event_device >= 0) put("wait_on_device", wait->event_device);
    put("wait_on_stream", wait->event_stream);
    put("wait_on_cuda_event_record_corr_id", wait->recorded_by);
  }

  /// Totals of system calls; the instants they were read from are not written again.
  void calls() {
    for (const CallTotal& total : trace_.calls) {
      arguments_.assign({{"count", static_cast<std::int64_t>(total.count)},
                         {"total_ns", total.time},
                         {"longest_so_far_ns", total.longest_so_far}});
      writer_.instant(track(total.track, 0), total.at + shift_, trace_.strings[total.name], kCallTotals, arguments_);
    }
  }

  void instants() {
    std::set<std::tuple<Ns, TrackId, StringId>> totals;
    for (const CallTotal& total : trace_.calls) totals.emplace(total.at, total.track, total.name);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < trace_.instants.size(); ++i) {
      const Instant& instant = trace_.instants[i];
      if (!totals.contains({instant.at, instant.track, instant.name})) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const Instant& x = trace_.instants[a];
      const Instant& y = trace_.instants[b];
      if (x.at != y.at) return x.at < y.at;
      if (x.track != y.track) return x.track < y.track;
      return x.name != y.name && trace_.strings[x.name] < trace_.strings[y.name];
    });
    for (const std::size_t i : order) {
      const Instant& instant = trace_.instants[i];
      writer_.instant(track(instant.track, 0), instant.at + shift_, trace_.strings[instant.name], {});
    }
  }

  void counter(const CounterSeries& series) {
    std::string name(trace_.strings[series.name]);
    // Series of one name differ in their track only, which a counter of a process does not have.
    if (series.track != kNone && trace_.tracks[series.track].name != 0)
      name = fmt::format("{} {}", trace_.strings[trace_.tracks[series.track].name], name);
    const TrackUuid uuid = writer_.counter_track(name, trace_.strings[series.unit], pids_[series.process]);
    std::vector<CounterSample> samples = series.samples;
    std::ranges::stable_sort(samples, [](const CounterSample& a, const CounterSample& b) {
      return a.at != b.at ? a.at < b.at : a.value < b.value;
    });
    for (const CounterSample& sample : samples) writer_.counter(uuid, sample.at + shift_, sample.value);
  }

  struct FlowEnd {
    SliceIndex slice;
    FlowPoint point;
    FlowKind kind;
  };

  const Trace& trace_;
  Writer& writer_;
  Ns shift_;
  std::vector<std::int64_t> pids_;  ///< by ProcessId; 0: the host
  std::vector<std::int64_t> tids_;  ///< by TrackId; 0: below the process
  std::vector<Argument> arguments_;
  std::vector<FlowEnd> flow_ends_;  ///< by slice
  std::vector<FlowPoint> flows_;    ///< of the slice that is written
  std::string grid_;
  std::string block_;
};

/// What is added to all times so that none is negative.
Ns shift_of(const Trace& trace) {
  Ns first = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) first = std::min(first, trace.slices[i].begin);
  for (std::size_t i = 0; i < trace.instants.size(); ++i) first = std::min(first, trace.instants[i].at);
  for (const CounterSeries& series : trace.counters)
    for (const CounterSample& sample : series.samples) first = std::min(first, sample.at);
  return -first;
}

}  // namespace

Status save_trace(const Trace& trace, const std::string& path, bool replace) {
  const Ns shift = shift_of(trace);
  WriterOptions options;
  options.replace = replace;
  options.realtime_of_zero = trace.base_ns != 0 ? std::max<std::int64_t>(0, trace.base_ns - shift) : 0;
  auto writer = Writer::create(path, options);
  if (!writer) return writer.error();
  Exporter(trace, *writer, shift).run();
  return writer->close();
}

}  // namespace culprit::perfetto
