#include "formats/perfetto/writer.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/utf8.h"
#include "formats/perfetto/chunk.h"
#include "formats/perfetto/chunk_file.h"
#include "formats/perfetto/clock_times.h"
#include "formats/perfetto/trace.pb.h"
#include "trace/recording_id.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostChunk = std::size_t{320} << 10;
constexpr std::size_t kLeastChunk = std::size_t{4} << 10;
constexpr std::size_t kMostMetadata = 4096;  ///< keys that are kept to be written again at the end
constexpr std::size_t kMostMetadataText = std::size_t{32} << 10;
/// Two readings of the clocks that differ by less have the same offset: only a suspend moves BOOTTIME.
constexpr Ns kSuspend = 1'000'000;

enum class TrackType : std::uint64_t { process = 1, thread, named, counter, group };

/// Never 0, which means the global track.
TrackUuid uuid_of(TrackType type, std::int64_t pid, std::uint64_t generation, std::int64_t tid = 0,
                  std::string_view name = {}, std::uint64_t lane = 0) {
  return std::max<TrackUuid>(1, hash_parts(type, pid, generation, tid, lane, hash_of(name)));
}

std::int32_t id32(std::int64_t id) { return static_cast<std::int32_t>(std::clamp<std::int64_t>(id, -1, 0x7fffffff)); }

std::string text_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return repair_utf8(text);
  return repair_utf8(text.substr(0, most)) + "...";
}

proto::TracePacket uuid_packet(std::uint64_t high, std::uint64_t low) {
  proto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  packet.mutable_trace_uuid()->set_msb(static_cast<std::int64_t>(high));
  packet.mutable_trace_uuid()->set_lsb(static_cast<std::int64_t>(low));
  return packet;
}

}  // namespace

struct Writer::State {
  struct Track {
    TrackUuid parent = 0;
    proto::TracePacket descriptor;
    std::uint64_t chunk = 0;  ///< the last one that holds the descriptor
  };
  struct Process {
    std::int64_t start_ns = 0;
    std::uint64_t generation = 0;
  };

  explicit State(ChunkFile output) : file(std::move(output)) {}

  ChunkFile file;
  WriterOptions options;
  std::size_t chunk_bytes = 0;
  Chunk chunk;
  std::uint64_t chunk_number = 1;
  std::uint64_t first_chunk = 1;  ///< of this file
  bool published = false;         ///< half a file under its name is worth keeping
  bool closed = false;
  std::optional<Error> failure;
  WriterStats stats;
  Ns boot_offset = 0;  ///< BOOTTIME - MONOTONIC
  Ns clock_error = 0;
  std::uint64_t sampling_hz = 0;
  std::uint64_t digest = 0;  ///< of the chunks of an export
  tsl::hopscotch_map<TrackUuid, Track> tracks;
  tsl::hopscotch_map<std::int64_t, Process, Hash> processes;
  std::map<std::string, std::string> facts;

  [[nodiscard]] bool dropping() const { return failure.has_value() || closed; }

  Status result() const {
    if (failure) return *failure;
    return {};
  }

  void count(std::uint64_t packets, std::size_t bytes) {
    stats.packets += packets;
    stats.raw_bytes += bytes;
    stats.file_bytes = file.bytes();
  }

  /// What every file begins with.
  Status begin_file() {
    proto::Trace head;
    proto::TracePacket& packet = *head.add_packet();  // first, so that a file that ends anywhere tells that it was cut
    packet.set_trusted_packet_sequence_id(kSequence);
    proto::TraceAttributes::Attribute& opened = *packet.mutable_trace_attributes()->add_attribute();
    opened.set_key(std::string(kFileState));
    opened.set_string_value(std::string(kFileOpen));
    fill_snapshot(*head.add_packet());
    std::uint64_t id[2] = {};
    if (!options.realtime_of_zero &&
        ::getrandom(static_cast<void*>(id), sizeof id, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof id)) {
      *head.add_packet() = uuid_packet(id[0], id[1]);
      facts[std::string(kRecordingId)] = fmt::format("{:016x}{:016x}", id[0], id[1]);
    }
    add_plain(head);
    if (failure) return *failure;
    if (!options.realtime_of_zero) {
      prepare();
      add_system_info();
    }
    return {};
  }

  /// A packet before any chunk, not deflated.
  void add_plain(proto::Trace& trace) {
    const std::string bytes = trace.SerializeAsString();
    const Status written = file.write_plain({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    if (!written) failure = written.error();
    count(static_cast<std::uint64_t>(trace.packet_size()), bytes.size());
  }

  /// The packets every chunk begins with: what follows depends on no earlier chunk.
  void begin_chunk() {
    proto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(proto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    packet.mutable_trace_packet_defaults()->set_timestamp_clock_id(proto::BUILTIN_CLOCK_MONOTONIC);
    if (sampling_hz != 0) {
      proto::PerfEvents::Timebase& base =
          *packet.mutable_trace_packet_defaults()->mutable_perf_sample_defaults()->mutable_timebase();
      base.set_frequency(sampling_hz);
      base.set_counter(proto::PerfEvents::SW_CPU_CLOCK);
    }
    if (chunk_number == first_chunk) packet.set_first_packet_on_sequence(true);
    chunk.add(packet);
    proto::TracePacket clocks;
    fill_snapshot(clocks);
    chunk.add(clocks);
  }

  void prepare() {
    if (chunk.empty()) begin_chunk();
  }

  /// Writes the chunk when it is full.
  void settle() {
    if (chunk.size() >= chunk_bytes) write_chunk();
  }

  void write_chunk() {
    if (chunk.empty()) return;
    const auto bytes = chunk.finish();
    if (options.realtime_of_zero)
      digest = hash_parts(digest, hash_of(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    if (!failure) {
      const Status written = file.write_deflated(bytes, kSequence);
      if (written)
        count(chunk.packets() + 1, bytes.size());
      else
        failure = written.error();
    }
    chunk.clear();
    ++chunk_number;
  }

  void fill_snapshot(proto::TracePacket& packet) {
    ClockTimes now;
    if (options.realtime_of_zero) {
      now.realtime = *options.realtime_of_zero;
    } else {
      now = read_clocks();
      // One offset as long as nothing was suspended: its noise must not move events against each other.
      const Ns offset = now.boottime - now.monotonic;
      if (std::abs(offset - boot_offset) > kSuspend) boot_offset = std::abs(offset) < kSuspend ? 0 : offset;
      now.boottime = now.monotonic + boot_offset;
      clock_error = now.error;
    }
    packet.set_trusted_packet_sequence_id(kSequence);
    proto::ClockSnapshot& snapshot = *packet.mutable_clock_snapshot();
    snapshot.set_primary_trace_clock(proto::BUILTIN_CLOCK_MONOTONIC);
    const auto add = [&](std::uint32_t id, Ns at) {
      proto::ClockSnapshot::Clock& clock = *snapshot.add_clocks();
      clock.set_clock_id(id);
      clock.set_timestamp(static_cast<std::uint64_t>(std::max<Ns>(at, 0)));
    };
    add(proto::BUILTIN_CLOCK_MONOTONIC, now.monotonic);
    add(proto::BUILTIN_CLOCK_BOOTTIME, now.boottime);
    if (now.realtime > 0) add(proto::BUILTIN_CLOCK_REALTIME, now.realtime);
  }

  std::uint64_t generation(std::int64_t pid) const {
    const auto it = processes.find(pid);
    return it == processes.end() ? 0 : it->second.generation;
  }

  /// Puts the descriptor of a track into this chunk, behind those of the tracks above it.
  void describe(TrackUuid uuid) {
    const auto it = tracks.find(uuid);
    if (it == tracks.end() || it->second.chunk == chunk_number) return;
    Track& track = it.value();
    track.chunk = chunk_number;
    if (track.parent != 0) describe(track.parent);
    chunk.add(track.descriptor);
  }

  /// The track, made on first use.
  std::pair<Track*, bool> track(TrackUuid uuid) {
    const auto [it, added] = tracks.try_emplace(uuid);
    Track& made = it.value();
    if (added) {
      made.descriptor.set_trusted_packet_sequence_id(kSequence);
      made.descriptor.set_sequence_flags(proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
      made.descriptor.mutable_track_descriptor()->set_uuid(uuid);
    }
    return {&made, added};
  }

  TrackUuid process_track(std::int64_t pid) {
    const TrackUuid uuid = uuid_of(TrackType::process, pid, generation(pid));
    const auto [made, added] = track(uuid);
    if (added) made->descriptor.mutable_track_descriptor()->mutable_process()->set_pid(id32(pid));
    return uuid;
  }

  TrackUuid thread_track(std::int64_t pid, std::int64_t tid) {
    const TrackUuid uuid = uuid_of(TrackType::thread, pid, generation(pid), tid);
    if (tracks.contains(uuid)) return uuid;
    const TrackUuid parent = process_track(pid);
    Track& made = *track(uuid).first;
    made.parent = parent;
    proto::TrackDescriptor& descriptor = *made.descriptor.mutable_track_descriptor();
    descriptor.set_parent_uuid(parent);
    descriptor.mutable_thread()->set_pid(id32(pid));
    descriptor.mutable_thread()->set_tid(id32(tid));
    return uuid;
  }

  TrackUuid scope(std::int64_t pid, std::int64_t tid) {
    if (tid > 0) return thread_track(pid, tid);
    return pid > 0 ? process_track(pid) : 0;
  }

  /// The track above a counter: "host.cpu", below "host", for "host.cpu.busy"; the process or 0 for a name without
  /// dots.
  TrackUuid counter_group(std::string_view counter, std::int64_t pid) {
    TrackUuid above = scope(pid, 0);
    constexpr int kLevels = 2;
    std::size_t dot = 0;
    for (int level = 0; level < kLevels; ++level) {
      dot = counter.find('.', dot + (level == 0 ? 0 : 1));
      if (dot == std::string_view::npos || dot == 0) break;
      const std::string_view name = counter.substr(0, dot);
      const TrackUuid uuid = uuid_of(TrackType::group, pid, generation(pid), 0, name);
      const auto [made, added] = track(uuid);
      if (added) {
        made->parent = above;
        proto::TrackDescriptor& descriptor = *made->descriptor.mutable_track_descriptor();
        if (above != 0) descriptor.set_parent_uuid(above);
        descriptor.set_name(text_of(name, kMostText));
      }
      above = uuid;
    }
    return above;
  }

  void add_system_info() {
    utsname names{};
    if (::uname(&names) != 0) return;
    proto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    proto::SystemInfo& info = *packet.mutable_system_info();
    info.mutable_utsname()->set_sysname(names.sysname);
    info.mutable_utsname()->set_version(names.version);
    info.mutable_utsname()->set_release(names.release);
    info.mutable_utsname()->set_machine(names.machine);
    info.set_page_size(static_cast<std::uint32_t>(std::max(0L, ::sysconf(_SC_PAGESIZE))));
    info.set_num_cpus(static_cast<std::uint32_t>(std::max(0L, ::sysconf(_SC_NPROCESSORS_CONF))));
    chunk.add(packet);
  }

  /// All facts once more: whatever chunk was lost, the last one has them, and in the form that viewers show.
  void add_facts() {
    proto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    std::size_t bytes = 0;
    const auto hand_over = [&] {
      chunk.add(packet);
      settle();
      prepare();
      packet.clear_trace_attributes();
      bytes = 0;
    };
    for (const auto& [key, value] : facts) {
      proto::TraceAttributes::Attribute& attribute = *packet.mutable_trace_attributes()->add_attribute();
      attribute.set_key(key);
      attribute.set_string_value(value);
      bytes += key.size() + value.size();
      if (bytes > kMostMetadataText) hand_over();
    }
    if (bytes != 0) hand_over();
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() {
  if (state_ && state_->published) (void)close();
}

Result<Writer> Writer::create(const std::string& path, const WriterOptions& options) {
  auto file = ChunkFile::create(path, options.replace, options.level);
  if (!file) return file.error();
  auto state = std::make_unique<State>(std::move(file).value());
  state->options = options;
  state->chunk_bytes = std::clamp(options.chunk_bytes, kLeastChunk, kMostChunk);
  if (Status status = state->begin_file(); !status) return status.error();
  Writer writer(std::move(state));
  const auto id = writer.state_->facts.find(std::string(kRecordingId));
  if (id != writer.state_->facts.end()) writer.metadata(kRecordingId, std::string(id->second));
  return writer;
}

void Writer::clock_snapshot() {
  if (state_->dropping()) return;
  state_->prepare();
  proto::TracePacket packet;
  state_->fill_snapshot(packet);
  state_->chunk.add(packet);
  state_->settle();
}

void Writer::process(const ProcessInfo& info) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  State::Process& known = s.processes[info.pid];
  if (known.start_ns != 0 && info.start_ns != 0 && known.start_ns != info.start_ns) ++known.generation;
  if (info.start_ns != 0) known.start_ns = info.start_ns;
  const std::string name = text_of(info.name, kMostText);

  proto::TracePacket tree;
  tree.set_trusted_packet_sequence_id(kSequence);
  proto::ProcessTree::Process& process = *tree.mutable_process_tree()->add_processes();
  process.set_pid(id32(info.pid));
  if (info.parent > 0) process.set_ppid(id32(info.parent));
  if (!name.empty()) process.add_cmdline(name);
  if (info.start_ns > 0) process.set_process_start_from_boot(static_cast<std::uint64_t>(info.start_ns));
  s.chunk.add(tree);

  const TrackUuid uuid = s.process_track(info.pid);
  State::Track& track = s.tracks.find(uuid).value();
  proto::ProcessDescriptor& descriptor = *track.descriptor.mutable_track_descriptor()->mutable_process();
  if (!name.empty()) descriptor.set_process_name(name);
  if (info.start_ns > 0) descriptor.set_start_timestamp_ns(std::max<Ns>(1, info.start_ns - s.boot_offset));
  descriptor.clear_process_labels();
  if (info.rank >= 0) descriptor.add_process_labels(fmt::format("rank {}", info.rank));
  if (!info.recorded) descriptor.add_process_labels(std::string(kStrangerLabel));
  track.chunk = 0;
  s.describe(uuid);
  s.settle();
}

void Writer::thread(std::int64_t pid, std::int64_t tid, std::string_view name) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  const std::string text = text_of(name, kMostText);
  proto::TracePacket tree;
  tree.set_trusted_packet_sequence_id(kSequence);
  proto::ProcessTree::Thread& thread = *tree.mutable_process_tree()->add_threads();
  thread.set_tid(id32(tid));
  thread.set_tgid(id32(pid));
  if (!text.empty()) thread.set_name(text);
  s.chunk.add(tree);
  const TrackUuid uuid = s.thread_track(pid, tid);
  State::Track& track = s.tracks.find(uuid).value();
  if (!text.empty()) track.descriptor.mutable_track_descriptor()->mutable_thread()->set_thread_name(text);
  track.chunk = 0;
  s.describe(uuid);
  s.settle();
}

void Writer::sched_switch(const SchedSwitch& event) {
  if (state_->dropping()) return;
  state_->prepare();
  state_->chunk.sched_switch(event, state_->boot_offset);
  state_->settle();
}

void Writer::sched_waking(const SchedWaking& event) {
  if (state_->dropping()) return;
  state_->prepare();
  state_->chunk.sched_waking(event, state_->boot_offset);
  state_->settle();
}

void Writer::process_exit(Ns at, std::int32_t tid) {
  if (state_->dropping()) return;
  state_->prepare();
  state_->chunk.process_exit(at + state_->boot_offset, tid);
  state_->settle();
}

void Writer::sampling_rate(std::uint64_t hz) {
  if (state_->dropping() || state_->sampling_hz == hz) return;
  // It stands at the begin of each chunk.
  state_->write_chunk();
  state_->sampling_hz = hz;
}

void Writer::stack(const StackTaken& taken, std::span<const CodeFrame> frames) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  s.chunk.stack(taken, frames);
  s.settle();
}

TrackUuid Writer::thread_track(std::int64_t pid, std::int64_t tid) { return state_->thread_track(pid, tid); }

TrackUuid Writer::named_track(std::string_view name, std::int64_t pid, std::int64_t tid, std::uint32_t lane) {
  State& s = *state_;
  const TrackUuid uuid = uuid_of(TrackType::named, pid, s.generation(pid), tid, name, lane);
  if (s.tracks.contains(uuid)) return uuid;
  const TrackUuid parent = s.scope(pid, tid);
  State::Track& made = *s.track(uuid).first;
  made.parent = parent;
  proto::TrackDescriptor& descriptor = *made.descriptor.mutable_track_descriptor();
  if (parent != 0) descriptor.set_parent_uuid(parent);
  descriptor.set_name(text_of(name, kMostText));
  return uuid;
}

TrackUuid Writer::counter_track(std::string_view name, std::string_view unit, std::int64_t pid) {
  State& s = *state_;
  const TrackUuid uuid = uuid_of(TrackType::counter, pid, s.generation(pid), 0, name, hash_of(unit));
  if (s.tracks.contains(uuid)) return uuid;
  const TrackUuid parent = s.counter_group(name, pid);
  State::Track& made = *s.track(uuid).first;
  made.parent = parent;
  proto::TrackDescriptor& descriptor = *made.descriptor.mutable_track_descriptor();
  if (parent != 0) descriptor.set_parent_uuid(parent);
  descriptor.set_name(text_of(name, kMostText));
  proto::CounterDescriptor& counter = *descriptor.mutable_counter();
  if (unit == "ns")
    counter.set_unit(proto::CounterDescriptor::UNIT_TIME_NS);
  else if (unit == "bytes")
    counter.set_unit(proto::CounterDescriptor::UNIT_SIZE_BYTES);
  else if (unit == "count")
    counter.set_unit(proto::CounterDescriptor::UNIT_COUNT);
  else if (!unit.empty())
    counter.set_unit_name(text_of(unit, 256));
  return uuid;
}

void Writer::slice(TrackUuid track, Ns begin, Ns end, std::string_view name, std::string_view category,
                   std::span<const Argument> arguments, std::span<const FlowPoint> flows) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  s.describe(track);
  s.chunk.slice(track, begin, end, name, category, arguments, flows);
  s.settle();
}

void Writer::slice_begin(TrackUuid track, Ns at, std::string_view name, std::string_view category,
                         std::span<const Argument> arguments) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  s.describe(track);
  s.chunk.event(proto::TrackEvent::TYPE_SLICE_BEGIN, at, track, name, category, arguments);
  s.settle();
}

void Writer::slice_end(TrackUuid track, Ns at) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  s.describe(track);
  s.chunk.event(proto::TrackEvent::TYPE_SLICE_END, at, track, {}, {}, {});
  s.settle();
}

void Writer::instant(TrackUuid track, Ns at, std::string_view name, std::string_view category,
                     std::span<const Argument> arguments) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  s.describe(track);
  s.chunk.event(proto::TrackEvent::TYPE_INSTANT, at, track, name, category, arguments);
  s.settle();
}

void Writer::counter(TrackUuid track, Ns at, double value) {
  State& s = *state_;
  if (s.dropping() || !std::isfinite(value)) return;
  s.prepare();
  s.describe(track);
  s.chunk.counter(at, track, value);
  s.settle();
}

void Writer::metadata(std::string_view key, std::string_view value) {
  State& s = *state_;
  if (s.dropping()) return;
  s.prepare();
  const std::string name = text_of(key, 256);
  const std::string text = text_of(value, kMostMetadataText);
  proto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  proto::ChromeMetadata& fact = *packet.mutable_chrome_events()->add_metadata();
  fact.set_name(name);
  fact.set_string_value(text);
  s.chunk.add(packet);
  if (s.facts.size() < kMostMetadata || s.facts.contains(name)) s.facts[name] = text;
  s.settle();
}

Status Writer::flush() {
  state_->write_chunk();
  return state_->result();
}

Status Writer::publish() {
  if (Status status = flush(); !status) return status;
  Status status = state_->file.publish();
  state_->published = status.ok();
  return status;
}

Status Writer::close() {
  State& s = *state_;
  if (s.closed) return s.result();
  if (!s.failure) {
    clock_snapshot();
    if (s.options.realtime_of_zero) {
      // The same events make the same file, to the byte: its number is made of what was written.
      s.write_chunk();
      s.prepare();
      s.chunk.add(uuid_packet(s.digest, hash_parts(s.digest, std::uint64_t{1})));
    } else {
      metadata("clock.error_ns", fmt::format("{}", s.clock_error));
    }
    s.facts[std::string(kFileState)] = kFileComplete;
    s.add_facts();
    s.write_chunk();
  }
  s.closed = true;
  if (s.failure && !s.published) return s.result();
  const Status status = s.file.close();
  if (!status && !s.failure) s.failure = status.error();
  return s.result();
}

Status Writer::next_file(const std::string& path, std::span<const std::string_view> outdated) {
  State& s = *state_;
  if (Status status = close(); !status) return status;
  auto file = ChunkFile::create(path, s.options.replace, s.options.level);
  if (!file) return file.error();
  s.file = std::move(*file);
  std::erase_if(s.facts, [&](const auto& fact) {
    return fact.first == kFileState ||
           std::ranges::any_of(outdated, [&](std::string_view begin) { return fact.first.starts_with(begin); });
  });
  s.closed = s.published = false;
  s.first_chunk = s.chunk_number;
  if (Status status = s.begin_file(); !status) return status;
  for (const auto& [key, value] : std::map(s.facts)) metadata(key, value);
  return s.result();
}

const WriterStats& Writer::stats() const { return state_->stats; }

}  // namespace culprit::perfetto
