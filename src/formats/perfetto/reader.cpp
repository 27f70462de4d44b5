#include "formats/perfetto/reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/utf8.h"
#include "formats/perfetto/clocks.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/sched_slices.h"
#include "formats/perfetto/trace.pb.h"
#include "formats/perfetto/track_events.h"
#include "trace/builder.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostSequences = std::size_t{1} << 16;
constexpr std::size_t kMostFacts = std::size_t{1} << 16;
constexpr std::uint64_t kMostCpus = 1 << 20;
// Clocks of ftrace that have no number in the format: outside of what files use. No snapshot ever names the second.
constexpr std::uint32_t kFtraceGlobal = 0xffff'ff00;
constexpr std::uint32_t kUnrelatedClock = 0xffff'ff01;

using Numbers = proto::TracePacket;

template <class Message>
bool parse(Message& message, Packet bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

/// What stands beside the payload of a packet.
struct Envelope {
  std::uint64_t timestamp = 0;
  bool has_timestamp = false;
  std::uint32_t clock = 0;
  std::uint32_t sequence = 0;
  std::uint32_t flags = 0;
  bool dropped = false;
  bool first = false;
  Field payload;  ///< of the fields that are read
  Packet interned;
  Packet defaults;
  bool has_interned = false;
  bool has_defaults = false;
};

bool open_packet(Packet bytes, Envelope& envelope) {
  Fields fields(bytes);
  Field field;
  while (fields.next(field)) {
    switch (field.number) {
      case Numbers::kTimestampFieldNumber:
        envelope.timestamp = field.value;
        envelope.has_timestamp = true;
        break;
      case Numbers::kTrustedPacketSequenceIdFieldNumber:
        envelope.sequence = static_cast<std::uint32_t>(field.value);
        break;
      case Numbers::kInternedDataFieldNumber:
        envelope.interned = field.bytes;
        envelope.has_interned = field.wire == Wire::length;
        break;
      case Numbers::kSequenceFlagsFieldNumber:
        envelope.flags |= static_cast<std::uint32_t>(field.value);
        break;
      case Numbers::kIncrementalStateClearedFieldNumber:
        if (field.value != 0) envelope.flags |= Numbers::SEQ_INCREMENTAL_STATE_CLEARED;
        break;
      case Numbers::kPreviousPacketDroppedFieldNumber:
        envelope.dropped = field.value != 0;
        break;
      case Numbers::kTimestampClockIdFieldNumber:
        envelope.clock = static_cast<std::uint32_t>(field.value);
        break;
      case Numbers::kTracePacketDefaultsFieldNumber:
        envelope.defaults = field.bytes;
        envelope.has_defaults = field.wire == Wire::length;
        break;
      case Numbers::kFirstPacketOnSequenceFieldNumber:
        envelope.first = field.value != 0;
        break;
      case Numbers::kFtraceEventsFieldNumber:
      case Numbers::kProcessTreeFieldNumber:
      case Numbers::kChromeEventsFieldNumber:
      case Numbers::kClockSnapshotFieldNumber:
      case Numbers::kTrackEventFieldNumber:
      case Numbers::kProcessDescriptorFieldNumber:
      case Numbers::kThreadDescriptorFieldNumber:
      case Numbers::kSystemInfoFieldNumber:
      case Numbers::kTrackDescriptorFieldNumber:
      case Numbers::kTraceAttributesFieldNumber:
        if (field.wire == Wire::length) envelope.payload = field;
        break;
      default:
        break;
    }
  }
  return fields.whole();
}

class Reader {
 public:
  explicit Reader(TraceBuilder& builder) : builder_(builder), tracks_(builder) {}

  void packet(Packet bytes) {
    Envelope envelope;
    if (!open_packet(bytes, envelope)) return builder_.losses().add(LossReason::event_malformed);
    Sequence& sequence = sequence_of(envelope.sequence);
    if (envelope.dropped && !envelope.first && sequence.seen) {
      builder_.losses().add(LossReason::packets_lost);
      sequence.valid = false;
    }
    sequence.seen = true;
    if ((envelope.flags & Numbers::SEQ_INCREMENTAL_STATE_CLEARED) != 0) sequence.clear_state();
    if ((envelope.flags & Numbers::SEQ_NEEDS_INCREMENTAL_STATE) != 0 && !sequence.valid)
      return builder_.losses().add(LossReason::packets_lost);
    if (envelope.has_interned && parsed(interned_, envelope.interned)) tracks_.intern(sequence, interned_);
    if (envelope.has_defaults && parsed(defaults_, envelope.defaults)) set_defaults(sequence);
    payload(envelope, sequence);
  }

  void finish() {
    tracks_.finish();
    const bool known = tracks_.knows_processes();
    // A thread that slept to the end of a recording leaves no event there; the counters of the host go on.
    Ns end = std::numeric_limits<Ns>::min();
    if (facts_.contains("record.version"))
      for (const CounterSeries& series : builder_.trace().counters)
        for (const CounterSample& sample : series.samples) end = std::max(end, sample.at);
    add_sched_slices(
        sched_,
        [&](std::int32_t tid) -> std::optional<std::int64_t> {
          if (!known) return -1;
          return tracks_.process_of(tid);
        },
        end, builder_);
    tracks_.name_all();
    Rank& rank = builder_.rank();
    if (const auto base = clocks_.realtime_of_zero(); base && *base > 0) {
      rank.base_ns = *base;
      rank.has_base = true;
    }
    rank.metadata.assign(facts_.begin(), facts_.end());
    if (facts_.contains("record.version") && !facts_.contains("record.end"))
      builder_.losses().add(LossReason::truncated_tail, 1, "the recorder did not end the file");
    // One number for the file, when all its processes agree.
    for (const auto& [pid, number] : tracks_.ranks()) {
      if (rank.rank >= 0 && rank.rank != number) {
        rank.rank = -1;
        break;
      }
      rank.rank = number;
    }
  }

 private:
  template <class Message>
  bool parsed(Message& message, Packet bytes) {
    if (parse(message, bytes)) return true;
    builder_.losses().add(LossReason::event_malformed);
    return false;
  }

  Sequence& sequence_of(std::uint32_t id) {
    if (sequences_.size() >= kMostSequences && !sequences_.contains(id)) id = 0;
    return sequences_[id];
  }

  void set_defaults(Sequence& sequence) {
    if (defaults_.has_timestamp_clock_id()) sequence.clock = defaults_.timestamp_clock_id();
    if (!defaults_.has_track_event_defaults()) return;
    const proto::TrackEventDefaults& events = defaults_.track_event_defaults();
    if (events.has_track_uuid()) {
      sequence.default_track = events.track_uuid();
      sequence.has_default_track = true;
    }
    sequence.extra_counters.assign(events.extra_counter_track_uuids().begin(),
                                   events.extra_counter_track_uuids().end());
    sequence.extra_double_counters.assign(events.extra_double_counter_track_uuids().begin(),
                                          events.extra_double_counter_track_uuids().end());
  }

  void payload(const Envelope& envelope, Sequence& sequence) {
    const Packet bytes = envelope.payload.bytes;
    switch (envelope.payload.number) {
      case Numbers::kTrackEventFieldNumber:
        if (parsed(event_, bytes)) track_event(envelope, sequence);
        break;
      case Numbers::kFtraceEventsFieldNumber:
        ftrace(bytes);
        break;
      case Numbers::kClockSnapshotFieldNumber:
        if (parsed(snapshot_, bytes)) clock_snapshot(envelope.sequence);
        break;
      case Numbers::kTrackDescriptorFieldNumber:
        if (parsed(track_, bytes)) tracks_.describe(track_);
        break;
      case Numbers::kProcessTreeFieldNumber:
        if (parsed(tree_, bytes)) process_tree();
        break;
      case Numbers::kProcessDescriptorFieldNumber:
        if (parsed(process_, bytes)) tracks_.name_process(process_.pid(), process_.process_name());
        break;
      case Numbers::kThreadDescriptorFieldNumber:
        if (parsed(thread_, bytes)) {
          sequence.default_track = tracks_.describe_thread(thread_);
          sequence.has_default_track = true;
        }
        break;
      case Numbers::kSystemInfoFieldNumber:
        if (parsed(system_, bytes)) system_info();
        break;
      case Numbers::kChromeEventsFieldNumber:
        if (parsed(chrome_, bytes)) chrome_metadata();
        break;
      case Numbers::kTraceAttributesFieldNumber:
        if (parsed(attributes_, bytes)) trace_attributes();
        break;
      default:
        break;
    }
  }

  std::optional<Ns> time_of(const Envelope& envelope, const Sequence& sequence) {
    std::optional<Ns> at;
    if (envelope.has_timestamp)
      at =
          clocks_.convert(envelope.sequence, envelope.clock != 0 ? envelope.clock : sequence.clock, envelope.timestamp);
    if (!at) builder_.losses().add(envelope.has_timestamp ? LossReason::time_invalid : LossReason::time_missing);
    return at;
  }

  void track_event(const Envelope& envelope, Sequence& sequence) {
    if (const auto at = time_of(envelope, sequence)) tracks_.event(sequence, event_, *at);
  }

  void clock_snapshot(std::uint32_t sequence) {
    std::vector<ClockReading> readings;
    for (const proto::ClockSnapshot::Clock& clock : snapshot_.clocks())
      readings.push_back({clock.clock_id(), clock.timestamp(), clock.is_incremental(),
                          clock.has_unit_multiplier_ns() ? clock.unit_multiplier_ns() : 1});
    std::optional<std::uint32_t> primary;
    if (snapshot_.has_primary_trace_clock()) primary = snapshot_.primary_trace_clock();
    clocks_.snapshot(sequence, readings, primary);
  }

  void process_tree() {
    for (const proto::ProcessTree::Process& process : tree_.processes()) {
      tracks_.introduce_process(process.pid());
      tracks_.name_process(process.pid(), process.cmdline_size() > 0 ? process.cmdline(0) : std::string());
    }
    for (const proto::ProcessTree::Thread& thread : tree_.threads())
      tracks_.name_thread(thread.tgid(), thread.tid(), thread.name());
  }

  void fact(std::string_view key, std::string value) {
    if (key.empty() || facts_.size() >= kMostFacts) return;
    facts_[repair_utf8(key)] = repair_utf8(value);
  }

  void system_info() {
    const proto::Utsname& names = system_.utsname();
    if (names.has_release()) fact("system.kernel", fmt::format("{} {}", names.sysname(), names.release()));
    if (names.has_machine()) fact("system.machine", names.machine());
    if (system_.has_num_cpus()) fact("system.cpus", std::to_string(system_.num_cpus()));
  }

  void chrome_metadata() {
    for (const proto::ChromeMetadata& entry : chrome_.metadata()) {
      if (entry.has_string_value())
        fact(entry.name(), entry.string_value());
      else if (entry.has_json_value())
        fact(entry.name(), entry.json_value());
      else if (entry.has_int_value())
        fact(entry.name(), std::to_string(entry.int_value()));
      else if (entry.has_bool_value())
        fact(entry.name(), entry.bool_value() ? "true" : "false");
    }
  }

  void trace_attributes() {
    for (const proto::TraceAttributes::Attribute& entry : attributes_.attribute())
      fact(entry.key(), entry.has_long_value() ? std::to_string(entry.long_value()) : entry.string_value());
  }

  // ---- scheduling

  static std::uint32_t clock_of_ftrace(std::uint64_t number) {
    switch (number) {
      case proto::FTRACE_CLOCK_UNSPECIFIED:
        return proto::BUILTIN_CLOCK_BOOTTIME;
      case proto::FTRACE_CLOCK_MONO_RAW:
        return proto::BUILTIN_CLOCK_MONOTONIC_RAW;
      case proto::FTRACE_CLOCK_GLOBAL:
        return kFtraceGlobal;
      default:
        return kUnrelatedClock;
    }
  }

  void ftrace(Packet bundle) {
    using Bundle = proto::FtraceEventBundle;
    std::int32_t cpu = 0;
    std::uint32_t clock = proto::BUILTIN_CLOCK_BOOTTIME;
    std::optional<std::uint64_t> on_ftrace_clock;
    std::optional<std::uint64_t> on_boottime;
    Packet compact;
    // The processor stands before the events in every writer's files, but it need not.
    Fields head(bundle);
    Field field;
    while (head.next(field)) {
      switch (field.number) {
        case Bundle::kCpuFieldNumber:
          cpu = static_cast<std::int32_t>(std::min<std::uint64_t>(field.value, kMostCpus));
          break;
        case Bundle::kLostEventsFieldNumber:
          if (field.value != 0) builder_.losses().add(LossReason::packets_lost);
          break;
        case Bundle::kCompactSchedFieldNumber:
          if (field.wire == Wire::length) compact = field.bytes;
          break;
        case Bundle::kFtraceClockFieldNumber:
          clock = clock_of_ftrace(field.value);
          break;
        case Bundle::kFtraceTimestampFieldNumber:
          on_ftrace_clock = field.value;
          break;
        case Bundle::kBootTimestampFieldNumber:
          on_boottime = field.value;
          break;
        default:
          break;
      }
    }
    if (clock == kFtraceGlobal && on_ftrace_clock && on_boottime)
      clocks_.snapshot(0, {{proto::BUILTIN_CLOCK_BOOTTIME, *on_boottime}, {kFtraceGlobal, *on_ftrace_clock}}, {});
    Fields fields(bundle);
    while (fields.next(field))
      if (field.number == Bundle::kEventFieldNumber && field.wire == Wire::length)
        ftrace_event(field.bytes, cpu, clock);
    if (!compact.empty() && parsed(compact_, compact)) compact_sched(cpu, clock);
  }

  StringId comm(const std::string& name) { return name.empty() ? 0 : builder_.intern(repair_utf8(name)); }

  std::optional<Ns> ftrace_time(std::uint64_t at, std::uint32_t clock) {
    const auto converted = clocks_.convert(0, clock, at);
    if (!converted) builder_.losses().add(LossReason::time_invalid);
    return converted;
  }

  void ftrace_event(Packet bytes, std::int32_t cpu, std::uint32_t clock) {
    // Most events of other people's traces are none of scheduling: looked at before they are parsed.
    Fields fields(bytes);
    Field field;
    bool wanted = false;
    while (fields.next(field)) {
      using Event = proto::FtraceEvent;
      wanted = wanted || field.number == Event::kSchedSwitchFieldNumber ||
               field.number == Event::kSchedWakeupFieldNumber || field.number == Event::kSchedWakingFieldNumber ||
               field.number == Event::kSchedWakeupNewFieldNumber || field.number == Event::kSchedProcessExitFieldNumber;
    }
    if (!fields.whole()) return builder_.losses().add(LossReason::event_malformed);
    if (!wanted || !parsed(ftrace_, bytes)) return;
    const auto at = ftrace_time(ftrace_.timestamp(), clock);
    if (!at) return;
    SchedEvent event;
    event.at = *at;
    event.cpu = cpu;
    if (ftrace_.has_sched_switch()) {
      const proto::SchedSwitchFtraceEvent& change = ftrace_.sched_switch();
      event.prev = change.prev_pid();
      event.next = change.next_pid();
      event.prev_name = comm(change.prev_comm());
      event.next_name = comm(change.next_comm());
      event.prev_state = static_cast<std::uint16_t>(change.prev_state() & 0xffff);
    } else if (ftrace_.has_sched_process_exit()) {
      event.kind = SchedEvent::Kind::exited;
      event.next = ftrace_.sched_process_exit().pid();
    } else {
      const proto::SchedWakingFtraceEvent& woken = ftrace_.has_sched_waking()   ? ftrace_.sched_waking()
                                                   : ftrace_.has_sched_wakeup() ? ftrace_.sched_wakeup()
                                                                                : ftrace_.sched_wakeup_new();
      event.kind = SchedEvent::Kind::woken;
      event.prev = static_cast<std::int32_t>(ftrace_.pid());
      event.next = woken.pid();
      event.next_name = comm(woken.comm());
    }
    sched_.push_back(event);
  }

  void compact_sched(std::int32_t cpu, std::uint32_t clock) {
    const auto name = [&](std::uint32_t index) {
      return static_cast<int>(index) < compact_.intern_table_size() && static_cast<int>(index) >= 0
                 ? comm(compact_.intern_table(static_cast<int>(index)))
                 : 0;
    };
    // Who leaves is who came by the switch before; of the first one it is not known.
    std::uint64_t time = 0;
    auto before = compact_last_.find(cpu);
    const int switches = std::min(
        {compact_.switch_timestamp_size(), compact_.switch_next_pid_size(), compact_.switch_prev_state_size()});
    for (int i = 0; i < switches; ++i) {
      time += compact_.switch_timestamp(i);
      SchedEvent event;
      event.cpu = cpu;
      event.next = compact_.switch_next_pid(i);
      event.next_name = i < compact_.switch_next_comm_index_size() ? name(compact_.switch_next_comm_index(i)) : 0;
      event.prev_state = static_cast<std::uint16_t>(compact_.switch_prev_state(i) & 0xffff);
      if (before == compact_last_.end()) {
        before = compact_last_.emplace(cpu, std::pair<std::int32_t, StringId>{}).first;
      } else {
        event.prev = before->second.first;
        event.prev_name = before->second.second;
      }
      before->second = {event.next, event.next_name};
      const auto at = ftrace_time(time, clock);
      if (!at) continue;
      event.at = *at;
      sched_.push_back(event);
    }
    time = 0;
    const int wakes = std::min(compact_.waking_timestamp_size(), compact_.waking_pid_size());
    for (int i = 0; i < wakes; ++i) {
      time += compact_.waking_timestamp(i);
      SchedEvent event;
      event.kind = SchedEvent::Kind::woken;
      event.cpu = cpu;
      event.next = compact_.waking_pid(i);
      event.next_name = i < compact_.waking_comm_index_size() ? name(compact_.waking_comm_index(i)) : 0;
      const auto at = ftrace_time(time, clock);
      if (!at) continue;
      event.at = *at;
      sched_.push_back(event);
    }
  }

  TraceBuilder& builder_;
  TrackEvents tracks_;
  Clocks clocks_;
  std::map<std::uint32_t, Sequence> sequences_;
  std::map<std::string, std::string> facts_;
  ChunkedVector<SchedEvent> sched_;
  std::map<std::int32_t, std::pair<std::int32_t, StringId>> compact_last_;

  // Messages are parsed into the same objects again and again, which keeps their memory.
  proto::TrackEvent event_;
  proto::InternedData interned_;
  proto::TracePacketDefaults defaults_;
  proto::ClockSnapshot snapshot_;
  proto::TrackDescriptor track_;
  proto::ProcessTree tree_;
  proto::ProcessDescriptor process_;
  proto::ThreadDescriptor thread_;
  proto::SystemInfo system_;
  proto::ChromeEventBundle chrome_;
  proto::TraceAttributes attributes_;
  proto::FtraceEvent ftrace_;
  proto::FtraceEventBundle::CompactSched compact_;
};

}  // namespace

Result<Trace> read(formats::Input input, const std::function<void(std::uint64_t)>& progress) {
  Rank rank;
  rank.path = input.path();
  rank.format = "Perfetto";
  rank.input_bytes = input.file_bytes();
  TraceBuilder builder(std::move(rank));
  Reader reader(builder);
  const auto counts = for_each_packet(
      input, builder.losses(), [&](Packet packet) { reader.packet(packet); }, progress);
  if (!counts) return counts.error();
  reader.finish();
  builder.rank().events = counts->packets;
  builder.rank().text_bytes = counts->bytes;
  if (builder.rank().input_bytes == 0) builder.rank().input_bytes = input.consumed_bytes();
  return std::move(builder).finish();
}

}  // namespace culprit::perfetto
