#include "formats/perfetto/track_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/utf8.h"
#include "formats/perfetto/costs.h"
#include "formats/perfetto/writer.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostUuids = std::size_t{1} << 20;

/// "[1,2,3]": the numbers in a text. False when one is negative or does not fit; then nothing is read.
template <class T>
bool numbers(std::string_view text, T (&three)[3]) {
  T read[3] = {0, 0, 0};
  std::size_t count = 0;
  for (const char* p = text.data(); p < text.data() + text.size() && count < 3;) {
    const auto [end, error] = std::from_chars(p, text.data() + text.size(), read[count]);
    const bool negative = p != text.data() && p[-1] == '-';
    if (error == std::errc::result_out_of_range || (error == std::errc() && negative)) return false;
    count += error == std::errc() ? 1U : 0U;
    p = error == std::errc() ? end : p + 1;
  }
  std::ranges::copy(read, three);
  return true;
}

std::string_view unit_text(const proto::CounterDescriptor& counter) {
  if (counter.has_unit_name()) return counter.unit_name();
  switch (counter.unit()) {
    case proto::CounterDescriptor::UNIT_TIME_NS:
      return "ns";
    case proto::CounterDescriptor::UNIT_COUNT:
      return "count";
    case proto::CounterDescriptor::UNIT_SIZE_BYTES:
      return "bytes";
    case proto::CounterDescriptor::UNIT_UNSPECIFIED:
      break;
  }
  switch (counter.type()) {
    case proto::CounterDescriptor::COUNTER_THREAD_TIME_NS:
      return "ns";
    case proto::CounterDescriptor::COUNTER_THREAD_INSTRUCTION_COUNT:
      return "count";
    case proto::CounterDescriptor::COUNTER_UNSPECIFIED:
      break;
  }
  return {};
}

}  // namespace

void Sequence::clear_state() {
  valid = true;
  clock = 0;
  has_default_track = false;
  default_track = 0;
  extra_counters.clear();
  extra_double_counters.clear();
  reset(names);
  reset(categories);
  reset(keys);
  reset(strings);
  reset(counter_sums);
  stacks.clear();
}

template <class Map, class Entries, class Text>
void TrackEvents::learn(Map& map, const Entries& entries, const Text& text) {
  for (const auto& entry : entries) map[entry.iid()] = builder_.intern(repair_utf8(text(entry)));
  expansion_.spend(kNamedCost * static_cast<std::uint64_t>(entries.size()));
}

void TrackEvents::intern(Sequence& sequence, const proto::InternedData& data) {
  const auto name = [](const auto& entry) -> const std::string& { return entry.name(); };
  learn(sequence.names, data.event_names(), name);
  learn(sequence.categories, data.event_categories(), name);
  learn(sequence.keys, data.debug_annotation_names(), name);
  learn(sequence.strings, data.debug_annotation_string_values(),
        [](const auto& entry) -> const std::string& { return entry.str(); });
}

std::uint32_t TrackEvents::track_index(std::uint64_t uuid) {
  if (const auto it = indexes_.find(uuid); it != indexes_.end()) return it->second;
  if (tracks_.size() >= kMostUuids) {
    builder_.losses().add(LossReason::tracks_collapsed);
    return static_cast<std::uint32_t>(kMostUuids - 1);
  }
  const auto index = static_cast<std::uint32_t>(tracks_.size());
  tracks_.emplace_back();
  expansion_.spend(kTrackCost);
  indexes_.emplace(uuid, index);
  return index;
}

void TrackEvents::name_process(std::int64_t pid, std::string_view name) {
  expansion_.spend(kNamedCost);
  StringId& known = process_names_[pid];
  if (!name.empty()) known = builder_.intern(repair_utf8(name));
}

void TrackEvents::name_thread(std::int64_t pid, std::int64_t tid, std::string_view name) {
  expansion_.spend(kNamedCost);
  pids_[tid] = pid;
  if (!name.empty()) thread_names_[tid] = builder_.intern(repair_utf8(name));
}

void TrackEvents::introduce_process(std::int64_t pid) {
  if (introduced_.insert(pid).second) expansion_.spend(kNamedCost);
}

std::optional<std::int64_t> TrackEvents::process_of(std::int64_t tid) const {
  // Others of whom only a thread's name is known were met on the way: they woke somebody, or ran before.
  if (strangers_.contains(tid)) return std::nullopt;
  if (introduced_.contains(tid)) return tid;  // the main thread
  const auto it = pids_.find(tid);
  if (it == pids_.end() || strangers_.contains(it->second) ||
      (!introduced_.empty() && !introduced_.contains(it->second)))
    return std::nullopt;
  return it->second;
}

void TrackEvents::describe(const proto::TrackDescriptor& descriptor) {
  TrackInfo& info = tracks_[track_index(descriptor.uuid())];
  if (descriptor.has_parent_uuid()) info.parent = descriptor.parent_uuid();
  info.described = true;
  const std::string& name = descriptor.has_static_name() ? descriptor.static_name() : descriptor.name();
  if (!name.empty()) info.name = builder_.intern(repair_utf8(name));
  if (descriptor.has_thread()) {
    const proto::ThreadDescriptor& thread = descriptor.thread();
    info.pid = thread.pid();
    info.tid = thread.tid();
    name_thread(thread.pid(), thread.tid(), thread.thread_name());
  } else if (descriptor.has_process()) {
    const proto::ProcessDescriptor& process = descriptor.process();
    info.pid = process.pid();
    if (process.has_process_name() || process.cmdline_size() > 0) introduce_process(process.pid());
    name_process(process.pid(), process.has_process_name() || process.cmdline_size() == 0 ? process.process_name()
                                                                                          : process.cmdline(0));
    strangers_.erase(process.pid());
    for (const std::string& label : process.process_labels()) {
      expansion_.spend(kNamedCost);
      if (label == kStrangerLabel) strangers_.insert(process.pid());
      std::int64_t rank = -1;
      if (label.starts_with("rank ") &&
          std::from_chars(label.data() + 5, label.data() + label.size(), rank).ec == std::errc() && rank >= 0)
        ranks_[process.pid()] = rank;
    }
  }
  if (descriptor.has_counter()) {
    const proto::CounterDescriptor& counter = descriptor.counter();
    info.is_counter = true;
    info.incremental = counter.is_incremental();
    info.multiplier = counter.has_unit_multiplier() ? counter.unit_multiplier() : 1;
    info.unit = builder_.intern(repair_utf8(unit_text(counter)));
    if (info.name == 0 && counter.type() == proto::CounterDescriptor::COUNTER_THREAD_TIME_NS)
      info.name = builder_.intern("thread time");
    if (info.name == 0 && counter.type() == proto::CounterDescriptor::COUNTER_THREAD_INSTRUCTION_COUNT)
      info.name = builder_.intern("thread instructions");
  }
}

std::uint64_t TrackEvents::describe_thread(const proto::ThreadDescriptor& thread) {
  // A number no writer is likely to use.
  const std::uint64_t uuid = hash_parts(thread.pid(), thread.tid());
  TrackInfo& info = tracks_[track_index(uuid)];
  info.pid = thread.pid();
  info.tid = thread.tid();
  info.described = true;
  name_thread(thread.pid(), thread.tid(), thread.thread_name());
  return uuid;
}

void TrackEvents::argument(Arguments& kept, bool& used, std::string_view key, const std::int64_t* number,
                           std::string_view text) {
  const auto invalid = [&] { builder_.losses().add(LossReason::argument_invalid); };
  const auto whole = [&](auto& to, bool& known) {
    using To = std::remove_reference_t<decltype(to)>;
    if (number == nullptr || !std::in_range<To>(*number)) return invalid();
    to = static_cast<To>(*number);
    known = used = true;
  };
  bool ignored = false;
  if (key == "correlation") {
    whole(kept.correlation, ignored);
  } else if (key == "device") {
    whole(kept.gpu.device, kept.gpu_known);
  } else if (key == "stream") {
    whole(kept.gpu.stream, kept.gpu_known);
  } else if (key == "context") {
    whole(kept.gpu.context, kept.gpu_known);
  } else if (key == "bytes") {
    whole(kept.gpu.bytes, ignored);
  } else if (key == "registers per thread") {
    whole(kept.gpu.registers, kept.gpu_known);
  } else if (key == "shared memory") {
    whole(kept.gpu.shared_memory, kept.gpu_known);
  } else if (key == "grid" && number == nullptr) {
    if (!numbers(text, kept.gpu.grid)) return invalid();
    used = true;
  } else if (key == "block" && number == nullptr) {
    if (!numbers(text, kept.gpu.block)) return invalid();
    used = true;
  } else if (key == "Sequence number") {
    whole(kept.extra.sequence, kept.extra_known);
  } else if (key == "Fwd thread id") {
    whole(kept.extra.forward_thread, kept.extra_known);
  } else if (key == "graph node id") {
    whole(kept.extra.graph_node, kept.extra_known);
  } else if (key == "In msg nelems") {
    whole(kept.extra.elements, kept.extra_known);
  } else if (key == "wait_on_device" || key == "wait_on_stream") {
    whole(key.ends_with("device") ? kept.event_device : kept.event_stream, ignored);
  } else if (key == "wait_on_cuda_event_record_corr_id") {
    whole(kept.event_record, ignored);
  } else if (key == "count" || key == "total_ns" || key == "longest_so_far_ns") {
    if (number == nullptr) return;  // anybody's argument may be called so
    (key[0] == 'c' ? kept.count : key[0] == 't' ? kept.total_ns : kept.longest_ns) = *number;
    used = true;
  } else if (key == "unended" && number != nullptr) {
    kept.unended = *number;
    used = true;
  } else if (key == "buckets" && number == nullptr) {
    kept.buckets = builder_.intern(text);
    used = true;
  } else if (key == "stack" && number == nullptr) {
    kept.stack = stacks_.folded(text);
    used = true;
  } else if ((key == "waker" || key == "woken_by") && number == nullptr) {
    (key == "waker" ? kept.waker : kept.context) = builder_.intern(text);
    used = true;
  } else if (key == "open" && number != nullptr) {
    kept.open = used = true;
  } else if (key == kFlowArgument && number == nullptr) {
    kept.flow = builder_.intern(text);
    used = true;
  } else if (key == "Collective name" || key == "Process Group Name") {
    if (number != nullptr) return;
    (key[0] == 'C' ? kept.extra.collective : kept.extra.group) = builder_.intern(text);
    kept.extra_known = used = true;
  }
}

std::uint32_t TrackEvents::arguments(const Sequence& sequence, const proto::TrackEvent& event) {
  Arguments kept;
  bool used = false;
  for (const proto::DebugAnnotation& annotation : event.debug_annotations()) {
    std::string_view key = annotation.name();
    if (annotation.has_name_iid()) {
      const auto it = sequence.keys.find(annotation.name_iid());
      if (it == sequence.keys.end()) continue;
      key = builder_.trace().strings[it->second];
    }
    std::optional<std::int64_t> number;
    std::string store;
    std::string_view text;
    if (annotation.has_int_value())
      number = annotation.int_value();
    else if (annotation.has_uint_value())
      number = static_cast<std::int64_t>(
          std::min<std::uint64_t>(annotation.uint_value(), std::numeric_limits<std::int64_t>::max()));
    else if (annotation.has_string_value())
      text = store = repair_utf8(annotation.string_value());
    else if (const auto it = sequence.strings.find(annotation.string_value_iid());
             annotation.has_string_value_iid() && it != sequence.strings.end())
      text = builder_.trace().strings[it->second];
    else
      continue;
    spend_on_text(expansion_, text);
    argument(kept, used, key, number ? &*number : nullptr, text);
  }
  if (!used) return kNone;
  expansion_.spend(kArgumentsCost);
  arguments_.push_back(kept);
  return static_cast<std::uint32_t>(arguments_.size() - 1);
}

void TrackEvents::sample(std::uint64_t uuid, Ns at, double value) {
  if (!std::isfinite(value)) return builder_.losses().add(LossReason::counter_value_invalid);
  expansion_.spend(kSampleCost);
  const std::uint32_t index = track_index(uuid);
  const auto multiplier = static_cast<double>(tracks_[index].multiplier);
  samples_.push_back({at, multiplier == 1 ? value : value * multiplier, index});
}

void TrackEvents::sample(Sequence& sequence, std::uint64_t uuid, Ns at, std::int64_t value) {
  if (tracks_[track_index(uuid)].incremental) {
    std::int64_t& sum = sequence.counter_sums[uuid];
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(value));
    value = sum;
  }
  sample(uuid, at, static_cast<double>(value));
}

void TrackEvents::event(Sequence& sequence, const proto::TrackEvent& event, Ns at) {
  const std::uint64_t uuid = event.has_track_uuid() ? event.track_uuid() : sequence.default_track;
  const auto& extra = event.extra_counter_track_uuids();
  for (int i = 0; i < event.extra_counter_values_size(); ++i) {
    const auto n = static_cast<std::size_t>(i);
    if (i < extra.size())
      sample(sequence, extra.Get(i), at, event.extra_counter_values(i));
    else if (extra.empty() && n < sequence.extra_counters.size())
      sample(sequence, sequence.extra_counters[n], at, event.extra_counter_values(i));
  }
  const auto& extra_double = event.extra_double_counter_track_uuids();
  for (int i = 0; i < event.extra_double_counter_values_size(); ++i) {
    const auto n = static_cast<std::size_t>(i);
    if (i < extra_double.size())
      sample(extra_double.Get(i), at, event.extra_double_counter_values(i));
    else if (extra_double.empty() && n < sequence.extra_double_counters.size())
      sample(sequence.extra_double_counters[n], at, event.extra_double_counter_values(i));
  }
  if (event.type() == proto::TrackEvent::TYPE_COUNTER) {
    if (event.has_double_counter_value())
      sample(uuid, at, event.double_counter_value());
    else if (event.has_counter_value())
      sample(sequence, uuid, at, event.counter_value());
    return;
  }

  expansion_.spend(kEventCost);
  Event row;
  row.at = at;
  row.track = track_index(uuid);
  if (event.has_name()) {
    row.name = builder_.intern(repair_utf8(event.name()));
  } else if (event.has_name_iid()) {
    const auto it = sequence.names.find(event.name_iid());
    if (it != sequence.names.end()) row.name = it->second;
  }
  const bool end = event.type() == proto::TrackEvent::TYPE_SLICE_END ||
                   (event.has_legacy_event() && event.legacy_event().phase() == 'E');
  if (!end && row.name == 0) {
    builder_.losses().add(LossReason::name_invalid);
    row.name = builder_.intern("(no name)");
  }
  if (event.category_iids_size() > 0) {
    const auto it = sequence.categories.find(event.category_iids(0));
    if (it != sequence.categories.end()) {
      const std::string_view name = builder_.trace().strings[it->second];
      spend_on_text(expansion_, name);
      row.category = builder_.category(name);
    }
  } else if (event.categories_size() > 0) {
    row.category = builder_.category(repair_utf8(event.categories(0)));
  }
  if (!end && event.debug_annotations_size() > 0) row.arguments = arguments(sequence, event);
  if (event.flow_ids_size() > 0 || event.terminating_flow_ids_size() > 0) flows(event, row);
  switch (event.type()) {
    case proto::TrackEvent::TYPE_SLICE_BEGIN:
      row.type = Type::begin;
      break;
    case proto::TrackEvent::TYPE_SLICE_END:
      row.type = Type::end;
      break;
    case proto::TrackEvent::TYPE_INSTANT:
      row.type = Type::instant;
      break;
    default:
      if (event.has_legacy_event()) return legacy(sequence, event, at, row);
      builder_.losses().add(LossReason::phase_unknown);
      return;
  }
  events_.push_back(row);
}

void TrackEvents::legacy(Sequence& sequence, const proto::TrackEvent& event, Ns at, Event row) {
  const proto::TrackEvent::LegacyEvent& old = event.legacy_event();
  if (old.has_tid_override() && !event.has_track_uuid()) {
    proto::ThreadDescriptor thread;
    const TrackInfo& own = tracks_[track_index(sequence.default_track)];
    thread.set_pid(old.has_pid_override() ? old.pid_override() : static_cast<std::int32_t>(own.pid));
    thread.set_tid(old.tid_override());
    row.track = track_index(describe_thread(thread));
  }
  switch (old.phase()) {
    case 'B':
      row.type = Type::begin;
      events_.push_back(row);
      return;
    case 'E':
      row.type = Type::end;
      events_.push_back(row);
      return;
    case 'X': {
      row.type = Type::begin;
      events_.push_back(row);
      Event end = row;
      end.type = Type::end;
      end.at = at + std::clamp<std::int64_t>(old.duration_us(), 0, kMaxDuration / 1000) * 1000;
      events_.push_back(end);
      return;
    }
    case 'i':
    case 'I':
    case 'R':
      row.type = Type::instant;
      events_.push_back(row);
      return;
    default:
      builder_.losses().add(LossReason::phase_unknown);
  }
}

void TrackEvents::owner(const TrackInfo& info, std::int64_t& pid, std::int64_t& tid) const {
  pid = info.pid;
  tid = info.tid;
  std::uint64_t up = info.parent;
  for (int depth = 0; depth < 16 && pid < 0 && up != 0; ++depth) {
    const auto it = indexes_.find(up);
    if (it == indexes_.end()) return;
    const TrackInfo& above = tracks_[it->second];
    pid = above.pid;
    tid = above.tid;
    up = above.parent;
  }
}

TrackId TrackEvents::builder_track(std::uint32_t index) {
  TrackInfo& info = tracks_[index];
  if (info.track != kNone) return info.track;
  TrackKey key;
  owner(info, key.pid, key.tid);
  if (info.tid < 0 && key.tid >= 0 && builder_.trace().strings[info.name] == kSchedulingTrack) {
    key.kind = TrackKind::sched;
  } else if (info.tid < 0 && (key.tid < 0 || builder_.trace().strings[info.name] != kOverlapTrack)) {
    key.kind = TrackKind::async;
    key.tid_text = info.name != 0 ? info.name : builder_.intern(info.pid >= 0 ? "process" : "track");
  }
  if (key.pid < 0)
    key.pid_text = builder_.intern("host");
  else
    introduce_process(key.pid);  // processes that ended before anyone described them have events all the same
  info.track = builder_.track(key);
  return info.track;
}

TrackId TrackEvents::blocked_thread(std::uint32_t index) {
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  owner(tracks_[index], pid, tid);
  return pid < 0 || tid < 0 ? builder_track(index) : builder_.track({.pid = pid, .tid = tid});
}

StringId TrackEvents::waker_of(const Arguments& kept) {
  if (kept.open) return 0;
  const auto& strings = builder_.trace().strings;
  if (strings[kept.context] == "interrupt") return kept.context;
  if (kept.waker == 0) return builder_.intern(kNoThread);
  if (kept.context == 0) return kept.waker;
  return builder_.intern(fmt::format("{} ({})", strings[kept.waker], strings[kept.context]));
}

void TrackEvents::add_slice(const Event& begin, Ns end) {
  Slice slice;
  slice.begin = begin.at;
  slice.duration = std::min(end - begin.at, kMaxDuration);
  slice.name = begin.name;
  slice.track = builder_track(begin.track);
  slice.category = begin.category;
  const bool gpu_work = is_gpu_work(builder_.trace().slice_class(slice));
  Arguments kept;
  if (begin.arguments != kNone) kept = arguments_[begin.arguments];
  slice.correlation = kept.correlation;
  if (kept.extra_known) slice.extra = builder_.add(kept.extra);
  if (builder_.trace().categories[slice.category].name == kBlocked)
    builder_.add(StackSample{slice.begin, slice.duration, blocked_thread(begin.track), kept.stack,
                             StackSample::Kind::off_cpu, waker_of(kept)});
  if (!gpu_work) {
    const SliceIndex row = builder_.add(slice);
    const bool sync = builder_.trace().slice_class(slice) == SliceClass::gpu_sync;
    if (sync && kept.event_stream >= 0 && kept.event_record > 0 && std::in_range<std::uint32_t>(kept.event_record))
      builder_.trace().stream_waits.push_back({row, static_cast<std::uint32_t>(kept.event_record), kept.gpu.device,
                                               kept.gpu.stream, kept.event_device, kept.event_stream});
    return;
  }
  builder_.add(slice, kept.gpu);
  Track& track = builder_.trace().tracks[slice.track];
  if (track.kind == TrackKind::async) {
    track.kind = TrackKind::gpu_stream;
    track.device = kept.gpu.device;
    track.stream = kept.gpu.stream;
  }
}

void TrackEvents::add_instant(const Event& event) {
  Trace& trace = builder_.trace();
  const std::string_view category = trace.categories[event.category].name;
  if (category == kDurations && event.arguments != kNone) return add_durations(event, arguments_[event.arguments]);
  const TrackId track = builder_track(event.track);
  builder_.add(Instant{event.at, event.name, track});
  if (event.arguments == kNone) return;
  const Arguments& kept = arguments_[event.arguments];
  if (category == kDiskTotals) return add_disk_total(event, kept);
  if (kept.count < 0 || kept.total_ns < 0 || (kept.count == 0 && kept.total_ns == 0) || category != kCallTotals) return;
  trace.calls.push_back({event.at, event.name, track, static_cast<std::uint64_t>(kept.count),
                         std::min(kept.total_ns, kMaxDuration), std::clamp<Ns>(kept.longest_ns, 0, kMaxDuration)});
}

void TrackEvents::add_counters() {
  struct Owner {
    ProcessId process = kNone;
    TrackId track = kNone;
  };
  std::vector<Owner> owners(tracks_.size());
  tsl::hopscotch_map<std::uint64_t, StringId> units;  // by process and name
  const auto unit_key = [](ProcessId process, StringId name) {
    return static_cast<std::uint64_t>(process) << 32 | name;
  };
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Sample& sample = samples_[i];
    const TrackInfo& info = tracks_[sample.track];
    Owner& known = owners[sample.track];
    const StringId name = info.name != 0 ? info.name : builder_.intern("(no name)");
    if (known.process == kNone) {
      std::int64_t pid = -1;
      std::int64_t tid = -1;
      owner(info, pid, tid);
      known.process = builder_.process(pid, pid < 0 ? builder_.intern("host") : 0);
      if (tid >= 0) known.track = builder_.track({.pid = pid, .tid = tid});
      units.try_emplace(unit_key(known.process, name), info.unit);
    }
    builder_.add_counter(name, known.process, known.track, {sample.at, sample.value});
  }
  for (CounterSeries& series : builder_.trace().counters)
    if (const auto it = units.find(unit_key(series.process, series.name)); it != units.end()) series.unit = it->second;
}

void TrackEvents::finish() {
  std::vector<std::uint32_t> order(events_.size());
  Ns last = 0;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    last = std::max(last, events_[i].at);
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) last = std::max(last, samples_[i].at);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const Event& x = events_[a];
    const Event& y = events_[b];
    return x.track != y.track ? x.track < y.track : x.at < y.at;
  });
  std::vector<std::uint32_t> open;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Event& event = events_[order[k]];
    if (event.type == Type::instant) {
      add_instant(event);
    } else if (event.type == Type::begin) {
      open.push_back(order[k]);
    } else if (open.empty()) {
      builder_.losses().add(LossReason::end_without_begin);
    } else {
      add_slice(events_[open.back()], event.at);
      open.pop_back();
    }
    if (k + 1 == order.size() || events_[order[k + 1]].track != event.track) {
      builder_.losses().add(LossReason::begin_without_end, open.size());
      for (; !open.empty(); open.pop_back()) add_slice(events_[open.back()], last);
    }
  }
  add_counters();
  add_flows();
}

void TrackEvents::name_all() {
  Trace& trace = builder_.trace();
  for (Process& process : trace.processes) {
    if (const auto it = process_names_.find(process.pid); it != process_names_.end()) process.name = it->second;
    if (process.name != 0) continue;
    if (const auto main = thread_names_.find(process.pid); main != thread_names_.end()) process.name = main->second;
  }
  for (Track& track : trace.tracks) {
    if (track.kind != TrackKind::thread && track.kind != TrackKind::sched) continue;
    const auto it = thread_names_.find(track.tid);
    if (it != thread_names_.end()) track.name = it->second;
  }
}

}  // namespace culprit::perfetto
