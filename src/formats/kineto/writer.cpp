#include "formats/kineto/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/json_writer.h"
#include "core/output_file.h"
#include "core/units.h"
#include "formats/kineto/envelope.h"
#include "formats/kineto/writer_gzip.h"

namespace culprit::formats::kineto {

namespace {

constexpr std::size_t kFlush = std::size_t{64} << 10;

std::string json_text(std::string_view text) { return json_string(text, JsonEscapes::least); }

/// A process and a thread, or what stands for them, as JSON values.
struct Place {
  std::string pid;
  std::string tid;
};

class Writer {
 public:
  Writer(const Trace& trace, std::uint16_t rank, const ByteSink& sink)
      : trace_(trace),
        rank_(rank),
        sink_(sink),
        json_(text_),
        names_(trace.strings.size()),
        places_(trace.tracks.size()) {
    const Rank& file = trace.ranks[rank];
    // Ranks that were aligned without a common clock have no absolute time any more.
    absolute_ = file.has_base && trace.clock != "unknown";
    shift_ = absolute_ ? trace.base_ns - file.base_ns : 0;
    for (const Category& category : trace.categories) categories_.push_back(json_text(category.name));
  }

  Status run() {
    header();
    metadata();
    mark_launchers();
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& s = trace_.slices[i];
      if (s.rank != rank_) continue;
      if (trace_.tracks[s.track].kind == TrackKind::async)
        async_slice(s, i);
      else
        slice(s, i);
      if (!flush_when_full()) return status_;
    }
    for (std::size_t i = 0; i < trace_.instants.size() && flush_when_full(); ++i) instant(trace_.instants[i]);
    for (const CounterSeries& series : trace_.counters) counter(series);
    for (std::size_t i = 0; i < trace_.flows.size() && flush_when_full(); ++i) flow(trace_.flows[i], i);
    json_.end_array();
    json_.end_object();
    json_.finish();
    return flush();
  }

 private:
  Status flush() {
    if (status_.ok() && !text_.empty()) status_ = sink_(text_);
    text_.clear();
    return status_;
  }
  bool flush_when_full() { return text_.size() < kFlush ? status_.ok() : flush().ok(); }

  [[nodiscard]] std::string us(Ns at) const { return format_us_exact(at + shift_); }

  const std::string& name(StringId id) {
    if (names_[id].empty()) names_[id] = json_text(trace_.strings[id]);
    return names_[id];
  }

  [[nodiscard]] std::uint16_t rank_of(TrackId track) const {
    return trace_.processes[trace_.tracks[track].process].rank;
  }

  [[nodiscard]] std::string pid(const Process& process) const {
    return process.text != 0 ? json_text(trace_.strings[process.text]) : fmt::format("{}", process.pid);
  }

  const Place& place(TrackId id) {
    Place& known = places_[id];
    if (known.pid.empty()) {
      const Track& track = trace_.tracks[id];
      const bool text = track.tid == -1 && track.name != 0;
      known = {pid(trace_.processes[track.process]),
               text ? json_text(trace_.strings[track.name]) : fmt::format("{}", track.tid)};
    }
    return known;
  }

  void member(std::string_view key, const std::string& json) {
    json_.key(key);
    json_.raw(json);
  }
  void member(const Place& place) {
    member("pid", place.pid);
    member("tid", place.tid);
  }

  void begin_event(std::string_view phase) {
    json_.begin_object(JsonForm::packed);
    json_.member("ph", phase);
  }

  void header() {
    const Rank& file = trace_.ranks[rank_];
    json_.begin_object();
    if (is_number(file.schema)) member("schemaVersion", file.schema);
    json_.begin_array("deviceProperties");
    for (const Device& d : trace_.devices) {
      if (d.rank != rank_) continue;
      json_.begin_object(JsonForm::packed);
      json_.member("id", d.id);
      member("name", json_text(d.name));
      json_.member("totalGlobalMem", d.memory_bytes);
      json_.member("numSms", d.multiprocessors);
      json_.member("warpSize", d.warp_size);
      const std::size_t point = d.compute_capability.find('.');
      if (point != std::string::npos && is_number(d.compute_capability.substr(0, point)) &&
          is_number(d.compute_capability.substr(point + 1))) {
        member("computeMajor", d.compute_capability.substr(0, point));
        member("computeMinor", d.compute_capability.substr(point + 1));
      }
      json_.end_object();
    }
    json_.end_array();
    if (file.rank >= 0 || file.world_size >= 0 || !file.backend.empty()) {
      json_.begin_object("distributedInfo", JsonForm::packed);
      member("backend", json_text(file.backend));
      json_.member("rank", file.rank);
      json_.member("world_size", file.world_size);
      json_.end_object();
    }
    for (const auto& [key, value] : file.metadata)
      if (const std::string_view option = std::string_view(key).substr(std::min(key.size(), kProfilerOption.size()));
          key.starts_with(kProfilerOption) && std::ranges::find(kMembers, option) != std::end(kMembers))
        json_.member(option, 1);
    if (absolute_) json_.member("baseTimeNanoseconds", file.base_ns);
    json_.member("displayTimeUnit", "ms");
    json_.begin_array("traceEvents");
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 10 &&
           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
           (text.size() == 1 || text[0] != '0');
  }

  void metadata() {
    for (const Process& process : trace_.processes) {
      if (process.rank != rank_) continue;
      const auto write = [&](std::string_view what, std::string_view key, StringId value) {
        if (value != 0) named(what, {pid(process), "0"}, key, value);
      };
      write("process_name", "name", process.name);
      write("process_labels", "labels", process.labels);
      flush_when_full();
    }
    for (TrackId t = 0; t < trace_.tracks.size(); ++t) {
      const Track& track = trace_.tracks[t];
      if (rank_of(t) != rank_ || track.name == 0 || track.kind == TrackKind::async) continue;
      named("thread_name", place(t), "name", track.name);
      flush_when_full();
    }
  }
  void named(std::string_view what, const Place& whose, std::string_view key, StringId value) {
    begin_event("M");
    json_.member("name", what);
    json_.member("ts", 0);
    member(whose);
    json_.begin_object("args");
    member(key, name(value));
    json_.end_object();
    json_.end_object();
  }

  /// Host calls whose GPU work carries the same correlation id get the arrow that Kineto draws.
  void mark_launchers() {
    launches_.assign(trace_.slices.size(), false);
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
      if (has_arrow(trace_.gpu[g])) launches_[trace_.gpu[g].launcher] = true;
  }
  [[nodiscard]] bool has_arrow(const GpuSlice& gpu) const {
    return gpu.launcher != kNone && trace_.slices[gpu.slice].correlation != 0 &&
           trace_.slices[gpu.slice].correlation == trace_.slices[gpu.launcher].correlation;
  }

  void arguments(const Slice& s, std::size_t index) {
    json_.begin_object("args");
    if (!host_written_ && !trace_.ranks[rank_].host.empty()) member("hostname", json_text(trace_.ranks[rank_].host));
    host_written_ = true;
    // Calls with one span nest by their numbers; rows of such slices are in that order.
    const bool python = trace_.slice_class(s) == SliceClass::python;
    if (s.correlation != 0)
      json_.member("correlation", s.correlation);
    else if (s.gpu == kNone)
      json_.member(python ? "Python id" : "External id", static_cast<std::uint64_t>(index) + 1);
    if (s.gpu != kNone) {
      const GpuSlice& g = trace_.gpu[s.gpu];
      json_.member("device", g.device);
      json_.member("context", g.context);
      json_.member("stream", g.stream);
      if (g.bytes != 0) json_.member("bytes", g.bytes);
      if (g.registers != 0) json_.member("registers per thread", g.registers);
      if (g.shared_memory != 0) json_.member("shared memory", g.shared_memory);
      if (g.grid[0] != 0 || g.grid[1] != 0 || g.grid[2] != 0) json_.member("grid", g.grid);
      if (g.block[0] != 0 || g.block[1] != 0 || g.block[2] != 0) json_.member("block", g.block);
    }
    if (s.extra != kNone) {
      const SliceExtra& extra = trace_.extras[s.extra];
      json_.member("Sequence number", extra.sequence);
      if (extra.forward_thread != 0) json_.member("Fwd thread id", extra.forward_thread);
      if (extra.graph_node != 0) json_.member("graph node id", extra.graph_node);
      if (extra.collective != 0) member("Collective name", name(extra.collective));
      if (extra.group != 0) member("Process Group Name", name(extra.group));
      if (extra.elements != 0) json_.member("In msg nelems", extra.elements);
    }
    if (trace_.slice_class(s) == SliceClass::gpu_sync) wait(static_cast<SliceIndex>(index));
    json_.end_object();
  }

  void wait(SliceIndex index) {
    const auto wait = std::ranges::lower_bound(trace_.stream_waits, index, {}, &StreamWait::slice);
    if (wait == trace_.stream_waits.end() || wait->slice != index) return;
    json_.member("device", wait->device);
    json_.member("stream", wait->stream);
    if (wait->event_device >= 0) json_.member("wait_on_device", wait->event_device);
    json_.member("wait_on_stream", wait->event_stream);
    json_.member("wait_on_cuda_event_record_corr_id", wait->recorded_by);
  }

  void category_of(const Slice& s) {
    if (!trace_.categories[s.category].name.empty()) member("cat", categories_[s.category]);
  }

  void slice(const Slice& s, std::size_t index) {
    begin_event("X");
    category_of(s);
    member("name", name(s.name));
    member(place(s.track));
    member("ts", us(s.begin));
    member("dur", format_us_exact(s.duration));
    arguments(s, index);
    json_.end_object();
    if (s.gpu != kNone && has_arrow(trace_.gpu[s.gpu]))
      arrow('f', "ac2g", fmt::format("{}", s.correlation), s.track, s.begin);
    if (launches_[index]) arrow('s', "ac2g", fmt::format("{}", s.correlation), s.track, s.begin);
  }

  void async_slice(const Slice& s, std::size_t index) {
    for (const char phase : {'b', 'e'}) {
      begin_event({&phase, 1});
      json_.member("id", fmt::format("slice{}", index));
      category_of(s);
      member("name", name(s.name));
      member(place(s.track));
      member("ts", us(phase == 'b' ? s.begin : s.end()));
      json_.end_object();
    }
  }

  void arrow(char phase, std::string_view category, const std::string& id, TrackId track, Ns at) {
    begin_event({&phase, 1});
    member("id", id);
    member(place(track));
    member("ts", us(at));
    json_.member("cat", category);
    json_.member("name", category);
    if (phase == 'f') json_.member("bp", "e");
    json_.end_object();
  }

  void flow(const Flow& flow, std::size_t index) {
    if (flow.from == kNone || flow.to == kNone || trace_.slices[flow.from].rank != rank_) return;
    std::string_view category = "flow";
    switch (flow.kind) {
      case FlowKind::host_to_device:
        category = "ac2g";
        break;
      case FlowKind::forward_backward:
        category = "fwdbwd";
        break;
      case FlowKind::async:
        category = "async";
        break;
      case FlowKind::other:
        break;
    }
    const std::string id = fmt::format("\"flow{}\"", index);
    const Slice& from = trace_.slices[flow.from];
    const Slice& to = trace_.slices[flow.to];
    arrow('s', category, id, from.track, from.begin);
    arrow('f', category, id, to.track, to.begin);
  }

  void instant(const Instant& instant) {
    if (rank_of(instant.track) != rank_) return;
    begin_event("i");
    json_.member("s", "t");
    member("name", name(instant.name));
    member(place(instant.track));
    member("ts", us(instant.at));
    json_.end_object();
  }

  void counter(const CounterSeries& series) {
    const Process& process = trace_.processes[series.process];
    if (process.rank != rank_) return;
    const Place where = series.track != kNone ? place(series.track) : Place{pid(process), "0"};
    for (const CounterSample& sample : series.samples) {
      if (!std::isfinite(sample.value)) continue;
      begin_event("C");
      member("name", name(series.name));
      member(where);
      member("ts", us(sample.at));
      json_.begin_object("args");
      json_.member("value", sample.value);
      json_.end_object();
      json_.end_object();
      if (!flush_when_full()) return;
    }
  }

  const Trace& trace_;
  const std::uint16_t rank_;
  const ByteSink& sink_;
  bool absolute_ = false;
  Ns shift_ = 0;
  bool host_written_ = false;
  Status status_;
  std::string text_;
  JsonWriter json_;
  std::vector<std::string> names_;       // by StringId, quoted, made when first needed
  std::vector<std::string> categories_;  // quoted
  std::vector<Place> places_;            // by TrackId
  std::vector<bool> launches_;           // by SliceIndex
};

}  // namespace

Status write_trace(const Trace& trace, std::uint16_t rank, const ByteSink& sink) {
  assert(rank < trace.ranks.size());
  return Writer(trace, rank, sink).run();
}

Status save_trace(const Trace& trace, std::uint16_t rank, const std::string& path, bool replace) {
  auto file = OutputFile::create(path, {kPrivateMode, replace});
  if (!file) return file.error();
  const ByteSink to_file = [&](std::string_view bytes) { return file->write(bytes); };
  if (path.ends_with(".gz")) {
    GzipWriter gzip(to_file);
    if (Status s = write_trace(trace, rank, [&](std::string_view text) { return gzip.write(text); }); !s) return s;
    if (Status s = gzip.finish(); !s) return s;
  } else if (Status s = write_trace(trace, rank, to_file); !s) {
    return s;
  }
  return file->commit();
}

}  // namespace culprit::formats::kineto
