#include "formats/kineto/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "core/escape.h"
#include "core/output_file.h"
#include "core/units.h"
#include "formats/kineto/writer_gzip.h"

namespace culprit::formats::kineto {

namespace {

constexpr std::size_t kFlush = std::size_t{64} << 10;

/// A JSON string with its quotes. '<' and its like stay readable in names that need no other care.
std::string quoted(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  return plain ? fmt::format("\"{}\"", text) : "\"" + escape_json(text) + "\"";
}

class Writer {
 public:
  Writer(const Trace& trace, std::uint16_t rank, const ByteSink& sink)
      : trace_(trace), rank_(rank), sink_(sink), names_(trace.strings.size()), pid_tid_(trace.tracks.size()) {
    const Rank& file = trace.ranks[rank];
    // Ranks that were aligned without a common clock have no absolute time any more.
    absolute_ = file.has_base && trace.clock != "unknown";
    shift_ = absolute_ ? trace.base_ns - file.base_ns : 0;
    for (const Category& category : trace.categories) categories_.push_back(quoted(category.name));
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
    text_ += "\n]\n}\n";
    return flush();
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void next_event() {
    text_ += first_event_ ? "\n" : ",\n";
    first_event_ = false;
  }

  Status flush() {
    if (status_.ok() && !text_.empty()) status_ = sink_(text_);
    text_.clear();
    return status_;
  }
  bool flush_when_full() { return text_.size() < kFlush ? status_.ok() : flush().ok(); }

  [[nodiscard]] std::string us(Ns at) const { return format_us_exact(at + shift_); }

  const std::string& name(StringId id) {
    if (names_[id].empty()) names_[id] = quoted(trace_.strings[id]);
    return names_[id];
  }

  [[nodiscard]] std::uint16_t rank_of(TrackId track) const {
    return trace_.processes[trace_.tracks[track].process].rank;
  }

  [[nodiscard]] std::string pid(const Process& process) const {
    return process.text != 0 ? quoted(trace_.strings[process.text]) : fmt::format("{}", process.pid);
  }

  const std::string& pid_tid(TrackId id) {
    std::string& known = pid_tid_[id];
    if (known.empty()) {
      const Track& track = trace_.tracks[id];
      const bool text = track.tid == -1 && track.name != 0;
      known = fmt::format("\"pid\":{},\"tid\":{}", pid(trace_.processes[track.process]),
                          text ? quoted(trace_.strings[track.name]) : fmt::format("{}", track.tid));
    }
    return known;
  }

  void header() {
    const Rank& file = trace_.ranks[rank_];
    text_ += "{\n";
    if (is_number(file.schema)) add("\"schemaVersion\":{},\n", file.schema);
    text_ += "\"deviceProperties\":[";
    bool first = true;
    for (const Device& d : trace_.devices) {
      if (d.rank != rank_) continue;
      add("{}\n{{\"id\":{},\"name\":{},\"totalGlobalMem\":{},\"numSms\":{},\"warpSize\":{}", first ? "" : ",", d.id,
          quoted(d.name), d.memory_bytes, d.multiprocessors, d.warp_size);
      const std::size_t point = d.compute_capability.find('.');
      if (point != std::string::npos && is_number(d.compute_capability.substr(0, point)) &&
          is_number(d.compute_capability.substr(point + 1)))
        add(",\"computeMajor\":{},\"computeMinor\":{}", d.compute_capability.substr(0, point),
            d.compute_capability.substr(point + 1));
      text_ += '}';
      first = false;
    }
    text_ += "],\n";
    if (file.rank >= 0 || file.world_size >= 0 || !file.backend.empty())
      add("\"distributedInfo\":{{\"backend\":{},\"rank\":{},\"world_size\":{}}},\n", quoted(file.backend), file.rank,
          file.world_size);
    if (absolute_) add("\"baseTimeNanoseconds\":{},\n", file.base_ns);
    text_ += "\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[";
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
        if (value == 0) return;
        next_event();
        add(R"({{"ph":"M","name":"{}","ts":0,"pid":{},"tid":0,"args":{{"{}":{}}}}})", what, pid(process), key,
            name(value));
      };
      write("process_name", "name", process.name);
      write("process_labels", "labels", process.labels);
      flush_when_full();
    }
    for (TrackId t = 0; t < trace_.tracks.size(); ++t) {
      const Track& track = trace_.tracks[t];
      if (rank_of(t) != rank_ || track.name == 0 || track.kind == TrackKind::async) continue;
      next_event();
      add(R"({{"ph":"M","name":"thread_name","ts":0,{},"args":{{"name":{}}}}})", pid_tid(t), name(track.name));
      flush_when_full();
    }
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

  void arguments(const Slice& s) {
    const char* comma = "";
    const auto put = [&](std::string_view key, const auto& value) {
      add("{}\"{}\":{}", comma, key, value);
      comma = ",";
    };
    if (!host_written_ && !trace_.ranks[rank_].host.empty()) put("hostname", quoted(trace_.ranks[rank_].host));
    host_written_ = true;
    if (s.correlation != 0) put("correlation", s.correlation);
    if (s.gpu != kNone) {
      const GpuSlice& g = trace_.gpu[s.gpu];
      put("device", g.device);
      put("context", g.context);
      put("stream", g.stream);
      if (g.bytes != 0) put("bytes", g.bytes);
      if (g.registers != 0) put("registers per thread", g.registers);
      if (g.shared_memory != 0) put("shared memory", g.shared_memory);
      if (g.grid[0] != 0 || g.grid[1] != 0 || g.grid[2] != 0)
        put("grid", fmt::format("[{},{},{}]", g.grid[0], g.grid[1], g.grid[2]));
      if (g.block[0] != 0 || g.block[1] != 0 || g.block[2] != 0)
        put("block", fmt::format("[{},{},{}]", g.block[0], g.block[1], g.block[2]));
    }
    if (s.extra == kNone) return;
    const SliceExtra& extra = trace_.extras[s.extra];
    put("Sequence number", extra.sequence);
    if (extra.forward_thread != 0) put("Fwd thread id", extra.forward_thread);
    if (extra.graph_node != 0) put("graph node id", extra.graph_node);
    if (extra.collective != 0) put("Collective name", name(extra.collective));
    if (extra.group != 0) put("Process Group Name", name(extra.group));
    if (extra.elements != 0) put("In msg nelems", extra.elements);
  }

  void slice(const Slice& s, std::size_t index) {
    next_event();
    text_ += "{\"ph\":\"X\",";
    if (!trace_.categories[s.category].name.empty()) add("\"cat\":{},", categories_[s.category]);
    add("\"name\":{},{},\"ts\":{},\"dur\":{},\"args\":{{", name(s.name), pid_tid(s.track), us(s.begin),
        format_us_exact(s.duration));
    arguments(s);
    text_ += "}}";
    if (s.gpu != kNone && has_arrow(trace_.gpu[s.gpu]))
      arrow('f', "ac2g", fmt::format("{}", s.correlation), s.track, s.begin);
    if (launches_[index]) arrow('s', "ac2g", fmt::format("{}", s.correlation), s.track, s.begin);
  }

  void async_slice(const Slice& s, std::size_t index) {
    for (const char phase : {'b', 'e'}) {
      next_event();
      add("{{\"ph\":\"{}\",\"id\":\"slice{}\",", phase, index);
      if (!trace_.categories[s.category].name.empty()) add("\"cat\":{},", categories_[s.category]);
      add("\"name\":{},{},\"ts\":{}}}", name(s.name), pid_tid(s.track), us(phase == 'b' ? s.begin : s.end()));
    }
  }

  void arrow(char phase, std::string_view category, const std::string& id, TrackId track, Ns at) {
    next_event();
    add("{{\"ph\":\"{0}\",\"id\":{1},{2},\"ts\":{3},\"cat\":\"{4}\",\"name\":\"{4}\"{5}}}", phase, id, pid_tid(track),
        us(at), category, phase == 'f' ? ",\"bp\":\"e\"" : "");
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
    next_event();
    add("{{\"ph\":\"i\",\"s\":\"t\",\"name\":{},{},\"ts\":{}}}", name(instant.name), pid_tid(instant.track),
        us(instant.at));
  }

  void counter(const CounterSeries& series) {
    const Process& process = trace_.processes[series.process];
    if (process.rank != rank_) return;
    const std::string where =
        series.track != kNone ? pid_tid(series.track) : fmt::format("\"pid\":{},\"tid\":0", pid(process));
    for (const CounterSample& sample : series.samples) {
      if (!std::isfinite(sample.value)) continue;
      next_event();
      add("{{\"ph\":\"C\",\"name\":{},{},\"ts\":{},\"args\":{{\"value\":{}}}}}", name(series.name), where,
          us(sample.at), sample.value);
      if (!flush_when_full()) return;
    }
  }

  const Trace& trace_;
  const std::uint16_t rank_;
  const ByteSink& sink_;
  bool absolute_ = false;
  Ns shift_ = 0;
  bool first_event_ = true;
  bool host_written_ = false;
  Status status_;
  std::string text_;
  std::vector<std::string> names_;       // by StringId, quoted, made when first needed
  std::vector<std::string> categories_;  // quoted
  std::vector<std::string> pid_tid_;     // by TrackId
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
