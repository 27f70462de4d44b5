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

#include "core/hash.h"
#include "formats/perfetto/chunk.h"
#include "formats/perfetto/chunk_file.h"
#include "formats/perfetto/clock_times.h"
#include "formats/perfetto/trace.pb.h"
#include "formats/perfetto/tracks.h"
#include "trace/recording_id.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostChunk = std::size_t{320} << 10;
constexpr std::size_t kLeastChunk = std::size_t{4} << 10;
constexpr std::size_t kMostMetadata = 4096;  ///< keys that are kept to be written again at the end
constexpr std::size_t kMostMetadataText = std::size_t{32} << 10;
/// Two readings of the clocks that differ by less have the same offset: only a suspend moves BOOTTIME.
constexpr Ns kSuspend = 1'000'000;

proto::TracePacket uuid_packet(std::uint64_t high, std::uint64_t low) {
  proto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  packet.mutable_trace_uuid()->set_msb(static_cast<std::int64_t>(high));
  packet.mutable_trace_uuid()->set_lsb(static_cast<std::int64_t>(low));
  return packet;
}

}  // namespace

struct Writer::State {
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
  std::uint32_t asks = 1;    ///< that a stack stands for by the packets so far of this chunk
  std::uint64_t digest = 0;  ///< of the chunks of an export
  Tracks tracks;
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
    asks = 1;
    if (sampling_hz != 0) fill_timebase(*packet.mutable_trace_packet_defaults());
    if (chunk_number == first_chunk) packet.set_first_packet_on_sequence(true);
    chunk.add(packet);
    proto::TracePacket clocks;
    fill_snapshot(clocks);
    chunk.add(clocks);
  }

  void fill_timebase(proto::TracePacketDefaults& defaults) const {
    proto::PerfEvents::Timebase& base = *defaults.mutable_perf_sample_defaults()->mutable_timebase();
    if (asks == 1)
      base.set_frequency(sampling_hz);
    else
      base.set_period((asks * kSecond + sampling_hz / 2) / sampling_hz);
    base.set_counter(proto::PerfEvents::SW_CPU_CLOCK);
  }

  /// What the stacks behind this stand for.
  void stand_for(std::uint32_t wanted) {
    if (sampling_hz == 0 || std::exchange(asks, wanted) == wanted) return;
    proto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    // They replace those before, all of them.
    packet.mutable_trace_packet_defaults()->set_timestamp_clock_id(proto::BUILTIN_CLOCK_MONOTONIC);
    fill_timebase(*packet.mutable_trace_packet_defaults());
    chunk.add(packet);
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

  void describe(TrackUuid uuid) { tracks.describe(uuid, chunk, chunk_number); }

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
  s.tracks.begins(info.pid, info.start_ns);
  const std::string name = text_of(info.name, kMostText);

  proto::TracePacket tree;
  tree.set_trusted_packet_sequence_id(kSequence);
  proto::ProcessTree::Process& process = *tree.mutable_process_tree()->add_processes();
  process.set_pid(id32(info.pid));
  if (info.parent > 0) process.set_ppid(id32(info.parent));
  if (!name.empty()) process.add_cmdline(name);
  if (info.start_ns > 0) process.set_process_start_from_boot(static_cast<std::uint64_t>(info.start_ns));
  s.chunk.add(tree);

  const auto [uuid, changed] = s.tracks.change_process(info.pid);
  proto::ProcessDescriptor& descriptor = *changed;
  if (!name.empty()) descriptor.set_process_name(name);
  if (info.start_ns > 0) descriptor.set_start_timestamp_ns(std::max<Ns>(1, info.start_ns - s.boot_offset));
  descriptor.clear_process_labels();
  if (info.rank >= 0) descriptor.add_process_labels(fmt::format("rank {}", info.rank));
  if (!info.recorded) descriptor.add_process_labels(std::string(kStrangerLabel));
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
  const auto [uuid, descriptor] = s.tracks.change_thread(pid, tid);
  if (!text.empty()) descriptor->set_thread_name(text);
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
  s.stand_for(std::max(1U, taken.asks));
  s.chunk.stack(taken, frames);
  s.settle();
}

void Writer::process_ended(std::int64_t pid) { state_->tracks.ended(pid); }

TrackUuid Writer::thread_track(std::int64_t pid, std::int64_t tid) { return state_->tracks.thread(pid, tid); }

TrackUuid Writer::named_track(std::string_view name, std::int64_t pid, std::int64_t tid, std::uint32_t lane) {
  return state_->tracks.named(name, pid, tid, lane);
}

TrackUuid Writer::counter_track(std::string_view name, std::string_view unit, std::int64_t pid) {
  return state_->tracks.counter(name, unit, pid);
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
  state_->tracks.flushed();
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

std::string answers_track(std::uint32_t port) {
  return port == 0 ? fmt::format("{} answers", kUnixTrack) : fmt::format("{}{} answers", kPortTrack, port);
}

}  // namespace culprit::perfetto
