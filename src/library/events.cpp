#include <culprit/events.h>

#include <string_view>
#include <utility>

#include "core/utf8.h"
#include "library/run_data.h"
#include "trace/rank_numbers.h"

namespace culprit {

namespace {

using Numbers = std::vector<std::int64_t>;

/// Codes of the texts that are used, in the order of their first use.
class Codes {
 public:
  explicit Codes(const StringTable& strings) : strings_(strings), code_of_(strings.size(), -1) {}

  void add(StringId text) {
    std::int32_t& code = code_of_[text];
    if (code < 0) {
      code = static_cast<std::int32_t>(out_.texts.size());
      out_.texts.push_back(repair_utf8(strings_[text]));
    }
    out_.codes.push_back(code);
  }
  /// Nothing where the text is empty.
  void add_known(StringId text) { strings_[text].empty() ? out_.codes.push_back(-1) : add(text); }
  Categories take() { return std::move(out_); }

 private:
  const StringTable& strings_;
  std::vector<std::int32_t> code_of_;
  Categories out_;
};

FrameColumn numbers(std::string key, Numbers values, bool has_none = false) {
  return {std::move(key), std::move(values), has_none};
}

void add(Frame& frame, FrameColumn column) {
  std::vector<FrameColumn>& all = frame.columns;
  all.push_back(std::move(column));
}

}  // namespace

Frame slices(const Run& run, const Task& task) {
  const Trace& trace = run.data().trace;
  const std::vector<std::int32_t> ranks = rank_numbers(trace);
  const std::size_t rows = trace.slices.size();
  Numbers begin(rows), duration(rows), pid(rows), tid(rows), rank(rows), device(rows, -1), stream(rows, -1),
      correlation(rows, -1), bytes(rows, -1);
  Codes names(trace.strings);
  Codes threads(trace.strings);
  Categories classes;
  Categories categories;
  std::vector<std::int32_t> class_codes(kSliceClasses, -1);
  for (const Category& category : trace.categories) categories.texts.push_back(repair_utf8(category.name));
  for (std::size_t i = 0; i < rows; ++i) {
    if (task.stop.stop_requested()) return Frame{"slices", {}, 0};
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    begin[i] = slice.begin;
    duration[i] = slice.duration;
    names.add(slice.name);
    threads.add_known(track.name);
    std::int32_t& code = class_codes[static_cast<std::size_t>(trace.slice_class(slice))];
    if (code < 0) {
      code = static_cast<std::int32_t>(classes.texts.size());
      classes.texts.emplace_back(to_string(trace.slice_class(slice)));
    }
    classes.codes.push_back(code);
    categories.codes.push_back(slice.category);
    pid[i] = trace.processes[track.process].pid;
    tid[i] = track.tid;
    rank[i] = rank_number(ranks, slice.rank);
    if (slice.correlation != 0) correlation[i] = slice.correlation;
    if (slice.gpu == kNone) continue;
    const GpuSlice& gpu = trace.gpu[slice.gpu];
    device[i] = gpu.device;
    stream[i] = gpu.stream;
    if (gpu.bytes != 0) bytes[i] = static_cast<std::int64_t>(gpu.bytes);
  }
  Frame frame{"slices", {}, rows};
  add(frame, numbers("begin_ns", std::move(begin)));
  add(frame, numbers("duration_ns", std::move(duration)));
  add(frame, FrameColumn{"name", names.take()});
  add(frame, FrameColumn{"class", std::move(classes)});
  add(frame, FrameColumn{"category", std::move(categories)});
  add(frame, FrameColumn{"thread", threads.take()});
  add(frame, numbers("pid", std::move(pid), true));
  add(frame, numbers("tid", std::move(tid), true));
  add(frame, numbers("rank", std::move(rank)));
  add(frame, numbers("device", std::move(device), true));
  add(frame, numbers("stream", std::move(stream), true));
  add(frame, numbers("correlation", std::move(correlation), true));
  add(frame, numbers("bytes", std::move(bytes), true));
  return frame;
}

Frame counters(const Run& run, const Task& task) {
  const Trace& trace = run.data().trace;
  const std::vector<std::int32_t> ranks = rank_numbers(trace);
  Numbers at;
  Numbers pid;
  Numbers rank;
  std::vector<double> value;
  Codes names(trace.strings);
  Codes units(trace.strings);
  for (const CounterSeries& series : trace.counters)
    for (const CounterSample& sample : series.samples) {
      if (task.stop.stop_requested()) return Frame{"counters", {}, 0};
      at.push_back(sample.at);
      names.add(series.name);
      units.add_known(series.unit);
      const bool known = series.process < trace.processes.size();
      pid.push_back(known ? trace.processes[series.process].pid : -1);
      rank.push_back(rank_number(ranks, known ? trace.processes[series.process].rank : std::uint16_t{0}));
      value.push_back(sample.value);
    }
  Frame frame{"counters", {}, at.size()};
  add(frame, numbers("at_ns", std::move(at)));
  add(frame, FrameColumn{"name", names.take()});
  add(frame, FrameColumn{"unit", units.take()});
  add(frame, numbers("pid", std::move(pid), true));
  add(frame, FrameColumn{"value", std::move(value)});
  add(frame, numbers("rank", std::move(rank)));
  return frame;
}

Frame markers(const Run& run, const Task& task) {
  const Trace& trace = run.data().trace;
  const std::vector<std::int32_t> ranks = rank_numbers(trace);
  Numbers at;
  Numbers pid;
  Numbers tid;
  Numbers rank;
  Codes names(trace.strings);
  for (std::size_t i = 0; i < trace.instants.size(); ++i) {
    if (task.stop.stop_requested()) return Frame{"markers", {}, 0};
    const Instant& instant = trace.instants[i];
    const Track& track = trace.tracks[instant.track];
    at.push_back(instant.at);
    names.add(instant.name);
    pid.push_back(trace.processes[track.process].pid);
    tid.push_back(track.tid);
    rank.push_back(rank_number(ranks, trace.processes[track.process].rank));
  }
  Frame frame{"markers", {}, at.size()};
  add(frame, numbers("at_ns", std::move(at)));
  add(frame, FrameColumn{"name", names.take()});
  add(frame, numbers("pid", std::move(pid), true));
  add(frame, numbers("tid", std::move(tid), true));
  add(frame, numbers("rank", std::move(rank)));
  return frame;
}

Frame devices(const Run& run) {
  const Trace& trace = run.data().trace;
  const std::vector<std::int32_t> ranks = rank_numbers(trace);
  Numbers rank;
  Numbers id;
  Numbers memory;
  Numbers units;
  Categories names;
  Categories capability;
  const auto add_text = [](Categories& to, const std::string& text) {
    to.codes.push_back(text.empty() ? -1 : static_cast<std::int32_t>(to.texts.size()));
    if (!text.empty()) to.texts.push_back(repair_utf8(text));
  };
  for (const Device& device : trace.devices) {
    rank.push_back(rank_number(ranks, device.rank));
    id.push_back(device.id);
    add_text(names, device.name);
    memory.push_back(device.memory_bytes != 0 ? static_cast<std::int64_t>(device.memory_bytes) : -1);
    units.push_back(device.multiprocessors != 0 ? std::int64_t{device.multiprocessors} : -1);
    add_text(capability, device.compute_capability);
  }
  Frame frame{"devices", {}, id.size()};
  add(frame, numbers("rank", std::move(rank)));
  add(frame, numbers("device", std::move(id), true));
  add(frame, FrameColumn{"name", std::move(names)});
  add(frame, numbers("memory_bytes", std::move(memory), true));
  add(frame, numbers("multiprocessors", std::move(units), true));
  add(frame, FrameColumn{"compute_capability", std::move(capability)});
  return frame;
}

}  // namespace culprit
