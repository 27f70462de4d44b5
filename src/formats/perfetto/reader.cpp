#include "formats/perfetto/reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "core/utf8.h"
#include "formats/perfetto/clocks.h"
#include "formats/perfetto/copy.h"
#include "formats/perfetto/costs.h"
#include "formats/perfetto/ftrace.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/sched_slices.h"
#include "formats/perfetto/stacks.h"
#include "formats/perfetto/trace.pb.h"
#include "formats/perfetto/track_events.h"
#include "formats/perfetto/writer.h"
#include "trace/builder.h"

namespace culprit::perfetto {

namespace {

/// Messages that were parsed from more keep too much memory.
constexpr std::size_t kMuch = std::size_t{64} << 10;

using Numbers = proto::TracePacket;

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
      case Numbers::kPerfSampleFieldNumber:
        if (field.wire == Wire::length) envelope.payload = field;
        break;
      default:
        break;
    }
  }
  return fields.whole();
}

class TraceReader {
 public:
  TraceReader(TraceBuilder& builder, formats::Expansion& expansion)
      : builder_(builder),
        expansion_(expansion),
        stacks_(builder, expansion),
        tracks_(builder, expansion, stacks_),
        ftrace_(builder, clocks_, expansion) {}

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
    if (envelope.has_interned && parsed(messages_.interned, envelope.interned)) intern(sequence);
    if (envelope.has_defaults && parsed(messages_.defaults, envelope.defaults)) set_defaults(sequence);
    payload(envelope, sequence);
    if (bytes.size() > kMuch) messages_ = Messages();
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
        ftrace_.events(),
        [&](std::int32_t tid) -> std::optional<std::int64_t> {
          if (!known) return -1;
          return tracks_.process_of(tid);
        },
        end, builder_, expansion_);
    tracks_.name_all();
    Rank& rank = builder_.rank();
    if (const auto base = clocks_.realtime_of_zero(); base && *base > 0) {
      rank.base_ns = *base;
      rank.has_base = true;
    }
    const auto state = facts_.find(std::string(kFileState));
    ended_ = state == facts_.end() || state->second != kFileOpen;
    if (state != facts_.end()) facts_.erase(state);
    rank.metadata.assign(facts_.begin(), facts_.end());
    struct Counted {
      std::string_view key;
      LossReason reason;
      std::string_view where = "while it was recorded";
    };
    for (const Counted& counted : {Counted{"cost.dropped", LossReason::recorder_dropped},
                                   Counted{"record.processes_left_out", LossReason::processes_left_out},
                                   Counted{"cost.syscalls.totals_missed", LossReason::calls_uncounted},
                                   Counted{"cost.syscalls.requests_missed", LossReason::requests_uncounted},
                                   Counted{"cost.syscalls.times_missed", LossReason::times_uncounted},
                                   Counted{"cost.sched.stacks_missed", LossReason::stacks_missed},
                                   Counted{kDamageFact, LossReason::export_damaged, "before it was exported"}})
      if (const auto fact = facts_.find(std::string(counted.key)); fact != facts_.end())
        builder_.losses().add(counted.reason, parse_number<std::uint64_t>(fact->second).value_or(0),
                              std::string(counted.where));
    const bool cut = !ended_ || (facts_.contains("record.version") && !facts_.contains("record.end"));
    if (cut && builder_.losses()[LossReason::truncated_tail] == 0)
      builder_.losses().add(LossReason::truncated_tail, 1, "the writer did not end the file");
    // One number for the file, when all its processes agree.
    for (const auto& [pid, number] : tracks_.ranks()) {
      if (rank.rank >= 0 && rank.rank != number) {
        rank.rank = -1;
        break;
      }
      rank.rank = number;
    }
  }

  /// A file of ours whose writer was killed before it handed over the first chunk.
  [[nodiscard]] bool holds_nothing() const {
    const Trace& trace = builder_.trace();
    const bool damaged = trace.losses.total(Severity::data_loss) != trace.losses[LossReason::truncated_tail];
    return !ended_ && !damaged && facts_.empty() && trace.slices.empty() && trace.instants.empty() &&
           trace.counters.empty() && trace.stack_samples.empty();
  }

 private:
  template <class Message>
  bool parsed(Message& message, Packet bytes) {
    // The memory of the message is gone before the next, but it must not be more than the whole trace may take.
    const bool fits = bytes.size() <= kMuch || expansion_.fits(kParsedTimes * bytes.size());
    if (!fits) expansion_.spend(kParsedTimes * bytes.size());
    if (!fits) return false;
    if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return true;
    builder_.losses().add(LossReason::event_malformed);
    return false;
  }

  void intern(Sequence& sequence) {
    tracks_.intern(sequence, messages_.interned);
    stacks_.intern(sequence.stacks, messages_.interned);
  }

  Sequence& sequence_of(std::uint32_t id) {
    const auto [it, added] = sequences_.try_emplace(id);
    if (added) expansion_.spend(kSequenceCost);
    return it->second;
  }

  void set_defaults(Sequence& sequence) {
    if (messages_.defaults.has_timestamp_clock_id()) sequence.clock = messages_.defaults.timestamp_clock_id();
    if (messages_.defaults.has_perf_sample_defaults())
      Stacks::set_defaults(sequence.stacks, messages_.defaults.perf_sample_defaults());
    if (!messages_.defaults.has_track_event_defaults()) return;
    const proto::TrackEventDefaults& events = messages_.defaults.track_event_defaults();
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
        if (parsed(messages_.event, bytes)) track_event(envelope, sequence);
        break;
      case Numbers::kFtraceEventsFieldNumber:
        ftrace_.bundle(bytes);
        break;
      case Numbers::kClockSnapshotFieldNumber:
        if (parsed(messages_.snapshot, bytes)) clock_snapshot(envelope.sequence);
        break;
      case Numbers::kTrackDescriptorFieldNumber:
        if (parsed(messages_.track, bytes)) tracks_.describe(messages_.track);
        break;
      case Numbers::kProcessTreeFieldNumber:
        if (parsed(messages_.tree, bytes)) process_tree();
        break;
      case Numbers::kProcessDescriptorFieldNumber:
        if (parsed(messages_.process, bytes))
          tracks_.name_process(messages_.process.pid(), messages_.process.process_name());
        break;
      case Numbers::kThreadDescriptorFieldNumber:
        if (parsed(messages_.thread, bytes)) {
          sequence.default_track = tracks_.describe_thread(messages_.thread);
          sequence.has_default_track = true;
        }
        break;
      case Numbers::kSystemInfoFieldNumber:
        if (parsed(messages_.system, bytes)) system_info();
        break;
      case Numbers::kChromeEventsFieldNumber:
        if (parsed(messages_.chrome, bytes)) chrome_metadata();
        break;
      case Numbers::kPerfSampleFieldNumber:
        if (parsed(messages_.sample, bytes))
          if (const auto at = time_of(envelope, sequence)) stacks_.sample(sequence.stacks, messages_.sample, *at);
        break;
      case Numbers::kTraceAttributesFieldNumber:
        if (parsed(messages_.attributes, bytes)) trace_attributes();
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
    if (const auto at = time_of(envelope, sequence)) tracks_.event(sequence, messages_.event, *at);
  }

  void clock_snapshot(std::uint32_t sequence) {
    std::vector<ClockReading> readings;
    for (const proto::ClockSnapshot::Clock& clock : messages_.snapshot.clocks())
      readings.push_back({clock.clock_id(), clock.timestamp(), clock.is_incremental(),
                          clock.has_unit_multiplier_ns() ? clock.unit_multiplier_ns() : 1});
    std::optional<std::uint32_t> primary;
    if (messages_.snapshot.has_primary_trace_clock()) primary = messages_.snapshot.primary_trace_clock();
    expansion_.spend(kClockCost * readings.size());
    clocks_.snapshot(sequence, readings, primary);
  }

  void process_tree() {
    for (const proto::ProcessTree::Process& process : messages_.tree.processes()) {
      tracks_.introduce_process(process.pid());
      tracks_.name_process(process.pid(), process.cmdline_size() > 0 ? process.cmdline(0) : std::string());
    }
    for (const proto::ProcessTree::Thread& thread : messages_.tree.threads())
      tracks_.name_thread(thread.tgid(), thread.tid(), thread.name());
  }

  void fact(std::string_view key, std::string_view value) {
    if (key.empty()) return;
    expansion_.spend(kFactCost);
    facts_[repair_utf8(key)] = repair_utf8(value);
  }

  void system_info() {
    const proto::Utsname& names = messages_.system.utsname();
    if (names.has_release()) fact("system.kernel", fmt::format("{} {}", names.sysname(), names.release()));
    if (names.has_machine()) fact("system.machine", names.machine());
    if (messages_.system.has_num_cpus()) fact("system.cpus", std::to_string(messages_.system.num_cpus()));
  }

  void chrome_metadata() {
    for (const proto::ChromeMetadata& entry : messages_.chrome.metadata()) {
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
    for (const proto::TraceAttributes::Attribute& entry : messages_.attributes.attribute())
      fact(entry.key(), entry.has_long_value() ? std::to_string(entry.long_value()) : entry.string_value());
  }

  /// Messages are parsed into the same objects again and again, which keeps their memory.
  struct Messages {
    proto::TrackEvent event;
    proto::InternedData interned;
    proto::TracePacketDefaults defaults;
    proto::ClockSnapshot snapshot;
    proto::TrackDescriptor track;
    proto::ProcessTree tree;
    proto::ProcessDescriptor process;
    proto::ThreadDescriptor thread;
    proto::SystemInfo system;
    proto::ChromeEventBundle chrome;
    proto::TraceAttributes attributes;
    proto::PerfSample sample;
  };

  TraceBuilder& builder_;
  formats::Expansion& expansion_;
  Stacks stacks_;
  TrackEvents tracks_;
  Clocks clocks_;
  Ftrace ftrace_;
  std::map<std::uint32_t, Sequence> sequences_;
  std::map<std::string, std::string> facts_;
  bool ended_ = true;
  Messages messages_;
};

}  // namespace

Result<Trace> read(formats::Input input, formats::Expansion expansion,
                   const std::function<void(std::uint64_t)>& progress) {
  Rank rank;
  rank.path = input.path();
  rank.format = "Perfetto";
  rank.input_bytes = input.file_bytes();
  TraceBuilder builder(std::move(rank));
  TraceReader reader(builder, expansion);
  const auto counts = for_each_packet(
      input, expansion, builder.losses(), [&](Packet packet) { reader.packet(packet); }, progress);
  if (!counts) return counts.error();
  reader.finish();
  if (expansion.exceeded()) return expansion.error(input.path());
  if (reader.holds_nothing())
    return input_error("holds no event: its writer was ended before it handed over the first, or the file is damaged",
                       input.path(), "record again");
  builder.rank().events = counts->packets;
  builder.rank().text_bytes = counts->bytes;
  if (builder.rank().input_bytes == 0) builder.rank().input_bytes = input.consumed_bytes();
  return std::move(builder).finish();
}

}  // namespace culprit::perfetto
