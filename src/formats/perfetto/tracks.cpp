#include "formats/perfetto/tracks.h"

#include <algorithm>
#include <string>

#include "core/utf8.h"

namespace culprit::perfetto {

namespace {

enum class TrackType : std::uint64_t { process = 1, thread, named, counter, group };

/// Never 0, which means the global track.
TrackUuid uuid_of(TrackType type, std::int64_t pid, std::uint64_t generation, std::int64_t tid = 0,
                  std::string_view name = {}, std::uint64_t lane = 0) {
  return std::max<TrackUuid>(1, hash_parts(type, pid, generation, tid, lane, hash_of(name)));
}

}  // namespace

std::int32_t id32(std::int64_t id) { return static_cast<std::int32_t>(std::clamp<std::int64_t>(id, -1, 0x7fffffff)); }

std::string text_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return repair_utf8(text);
  return repair_utf8(text.substr(0, most)) + "...";
}

void Tracks::begins(std::int64_t pid, Ns start) {
  Process& known = processes_[pid];
  if (start == 0) return;
  if (known.start != 0 && known.start != start) {
    ++known.generation;
    ended_.erase(pid);
  }
  known.start = start;
}

void Tracks::ended(std::int64_t pid) { ended_[pid] = flushes_; }

std::uint64_t Tracks::generation(std::int64_t pid) const {
  const auto it = processes_.find(pid);
  return it == processes_.end() ? 0 : it->second.generation;
}

/// The track, made on first use.
std::pair<Tracks::Track*, bool> Tracks::make(TrackUuid uuid, std::int64_t pid) {
  const auto [it, added] = tracks_.try_emplace(uuid);
  Track& made = it.value();
  if (added) {
    made.flush = flushes_;
    made.pid = pid;
    made.generation = generation(pid);
    made.descriptor.set_trusted_packet_sequence_id(kSequence);
    made.descriptor.set_sequence_flags(proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    made.descriptor.mutable_track_descriptor()->set_uuid(uuid);
  }
  return {&made, added};
}

TrackUuid Tracks::process(std::int64_t pid, bool is_used) {
  const TrackUuid uuid = uuid_of(TrackType::process, pid, generation(pid));
  const auto [made, added] = make(uuid, pid);
  if (added) made->descriptor.mutable_track_descriptor()->mutable_process()->set_pid(id32(pid));
  made->is_used |= is_used;
  return uuid;
}

TrackUuid Tracks::thread(std::int64_t pid, std::int64_t tid, bool is_used) {
  const TrackUuid uuid = uuid_of(TrackType::thread, pid, generation(pid), tid);
  if (const auto known = tracks_.find(uuid); known != tracks_.end() && known->second.is_used) return uuid;
  const TrackUuid parent = process(pid, is_used);
  const auto [made, added] = make(uuid, pid);
  made->is_used |= is_used;
  if (!added) return uuid;
  made->parent = parent;
  proto::TrackDescriptor& descriptor = *made->descriptor.mutable_track_descriptor();
  descriptor.set_parent_uuid(parent);
  descriptor.mutable_thread()->set_pid(id32(pid));
  descriptor.mutable_thread()->set_tid(id32(tid));
  return uuid;
}

/// A track that something will be on, below another one or (0) none.
proto::TrackDescriptor& Tracks::name_below(TrackUuid parent, std::string_view name, Track& made) {
  made.is_used = true;
  made.parent = parent;
  proto::TrackDescriptor& descriptor = *made.descriptor.mutable_track_descriptor();
  if (parent != 0) descriptor.set_parent_uuid(parent);
  descriptor.set_name(text_of(name, kMostText));
  return descriptor;
}

TrackUuid Tracks::thread(std::int64_t pid, std::int64_t tid) { return thread(pid, tid, true); }

TrackUuid Tracks::scope(std::int64_t pid, std::int64_t tid) {
  if (tid > 0) return thread(pid, tid, true);
  return pid > 0 ? process(pid, true) : 0;
}

/// The track above a counter: "host.cpu", below "host", for "host.cpu.busy"; the process or 0 for a name without dots.
TrackUuid Tracks::counter_group(std::string_view counter, std::int64_t pid) {
  TrackUuid above = scope(pid, 0);
  constexpr int kLevels = 2;
  std::size_t dot = 0;
  for (int level = 0; level < kLevels; ++level) {
    dot = counter.find('.', dot + (level == 0 ? 0 : 1));
    if (dot == std::string_view::npos || dot == 0) break;
    const std::string_view name = counter.substr(0, dot);
    const TrackUuid uuid = uuid_of(TrackType::group, pid, generation(pid), 0, name);
    const auto [made, added] = make(uuid, pid);
    if (added) name_below(above, name, *made);
    above = uuid;
  }
  return above;
}

TrackUuid Tracks::named(std::string_view name, std::int64_t pid, std::int64_t tid, std::uint32_t lane) {
  const TrackUuid uuid = uuid_of(TrackType::named, pid, generation(pid), tid, name, lane);
  if (tracks_.contains(uuid)) return uuid;
  const TrackUuid parent = scope(pid, tid);
  name_below(parent, name, *make(uuid, pid).first);
  return uuid;
}

TrackUuid Tracks::counter(std::string_view name, std::string_view unit, std::int64_t pid) {
  const TrackUuid uuid = uuid_of(TrackType::counter, pid, generation(pid), 0, name, hash_of(unit));
  if (tracks_.contains(uuid)) return uuid;
  const TrackUuid parent = counter_group(name, pid);
  proto::TrackDescriptor& descriptor = name_below(parent, name, *make(uuid, pid).first);
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

std::pair<TrackUuid, proto::ProcessDescriptor*> Tracks::change_process(std::int64_t pid) {
  const TrackUuid uuid = process(pid, false);
  Track& track = tracks_.find(uuid).value();
  track.chunk = 0;
  return {uuid, track.descriptor.mutable_track_descriptor()->mutable_process()};
}

std::pair<TrackUuid, proto::ThreadDescriptor*> Tracks::change_thread(std::int64_t pid, std::int64_t tid) {
  const TrackUuid uuid = thread(pid, tid, false);
  Track& track = tracks_.find(uuid).value();
  track.chunk = 0;
  return {uuid, track.descriptor.mutable_track_descriptor()->mutable_thread()};
}

void Tracks::describe(TrackUuid uuid, Chunk& chunk, std::uint64_t chunk_number) {
  const auto it = tracks_.find(uuid);
  if (it == tracks_.end() || it->second.chunk == chunk_number) return;
  Track& track = it.value();
  track.chunk = chunk_number;
  track.flush = flushes_;
  if (track.parent != 0) describe(track.parent, chunk, chunk_number);
  chunk.add(track.descriptor);
}

void Tracks::flushed() {
  if (++flushes_ % kCold != 0) return;
  const bool many = tracks_.size() > kMostUnused;
  if (!many && ended_.empty()) return;
  const auto is_cold = [&](std::uint64_t flush) { return flushes_ - flush >= kCold; };
  const auto is_over = [&](const Track& track) {
    if (track.pid <= 0) return false;
    if (track.generation < generation(track.pid)) return true;
    const auto end = ended_.find(track.pid);
    return end != ended_.end() && is_cold(end->second);
  };
  // What is above a track was told with it, so none is forgotten before those below it.
  for (auto it = tracks_.begin(); it != tracks_.end();) {
    const Track& track = it->second;
    const bool forget = is_cold(track.flush) && (is_over(track) || (many && !track.is_used));
    it = forget ? tracks_.erase(it) : std::next(it);
  }
  // Once more for those that something was told of after the end.
  for (auto it = ended_.begin(); it != ended_.end();)
    it = flushes_ - it->second >= 2 * kCold ? ended_.erase(it) : std::next(it);
}

}  // namespace culprit::perfetto
