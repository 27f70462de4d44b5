// The tracks of a recording that is being written, and whose they are.
//
// No chunk of a recording depends on another one: the descriptor of a track stands in each that tells something of it,
// so it is kept. A recording of days sees more processes and threads end than there is room for. Those of a process
// that ended, and those that nobody ever put anything on (they give the name of a thread of another program), are
// forgotten when nothing was told of them for a while; asked for again, a track has the number that it had.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/units.h"
#include "formats/perfetto/chunk.h"
#include "formats/perfetto/trace.pb.h"
#include "formats/perfetto/writer.h"

namespace culprit::perfetto {

/// A process or thread number as the format has it.
std::int32_t id32(std::int64_t id);
/// UTF-8, of `most` bytes and "..." at the most.
std::string text_of(std::string_view text, std::size_t most);

class Tracks {
 public:
  /// Flushes without a word of a track until it may be forgotten.
  static constexpr std::uint64_t kCold = 32;
  /// So many tracks are kept that nothing is on.
  static constexpr std::size_t kMostUnused = std::size_t{1} << 15;

  /// A process, which is another one than before if it began at another time (0: not known).
  void begins(std::int64_t pid, Ns start);
  /// It ended, or nobody follows it any more.
  void ended(std::int64_t pid);

  TrackUuid thread(std::int64_t pid, std::int64_t tid);
  TrackUuid named(std::string_view name, std::int64_t pid, std::int64_t tid, std::uint32_t lane);
  TrackUuid counter(std::string_view name, std::string_view unit, std::int64_t pid);

  /// Those of a process and of a thread, to be changed: the next describe() tells them again.
  std::pair<TrackUuid, proto::ProcessDescriptor*> change_process(std::int64_t pid);
  std::pair<TrackUuid, proto::ThreadDescriptor*> change_thread(std::int64_t pid, std::int64_t tid);

  /// Puts the descriptor into this chunk, behind those of the tracks above it, unless they are there.
  void describe(TrackUuid uuid, Chunk& chunk, std::uint64_t chunk_number);

  /// Forgets, now and then, those that are of no use any more.
  void flushed();

  [[nodiscard]] std::size_t size() const { return tracks_.size(); }

 private:
  struct Track {
    TrackUuid parent = 0;
    proto::TracePacket descriptor;
    std::uint64_t chunk = 0;  ///< the last one that holds the descriptor
    std::uint64_t flush = 0;  ///< when it was made or told last
    std::int64_t pid = 0;
    std::uint64_t generation = 0;
    bool is_used = false;  ///< somebody asked for its number
  };
  struct Process {
    Ns start = 0;
    std::uint64_t generation = 0;
  };

  [[nodiscard]] std::uint64_t generation(std::int64_t pid) const;
  std::pair<Track*, bool> make(TrackUuid uuid, std::int64_t pid);
  TrackUuid process(std::int64_t pid, bool is_used);
  TrackUuid thread(std::int64_t pid, std::int64_t tid, bool is_used);
  TrackUuid scope(std::int64_t pid, std::int64_t tid);
  static proto::TrackDescriptor& name_below(TrackUuid parent, std::string_view name, Track& made);
  TrackUuid counter_group(std::string_view counter, std::int64_t pid);

  tsl::hopscotch_map<TrackUuid, Track> tracks_;
  tsl::hopscotch_map<std::int64_t, Process, Hash> processes_;
  tsl::hopscotch_map<std::int64_t, std::uint64_t, Hash> ended_;  // and the flush then
  std::uint64_t flushes_ = 0;
};

}  // namespace culprit::perfetto
