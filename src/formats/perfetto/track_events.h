// TrackEvents of a Perfetto trace: gathered as they come, because neither times nor descriptions of tracks are in
// order, and turned into slices, instants and counters at the end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/chunked_vector.h"
#include "core/hash.h"
#include "formats/io/expansion.h"
#include "formats/perfetto/stacks.h"
#include "formats/perfetto/trace.pb.h"
#include "trace/builder.h"

namespace culprit::perfetto {

/// Names of the tracks on which exported traces keep what a thread's own track cannot hold.
inline constexpr std::string_view kSchedulingTrack = "scheduling";
inline constexpr std::string_view kOverlapTrack = "overlapping";

/// What packets of one sequence share.
struct Sequence {
  using Numbered = tsl::hopscotch_map<std::uint64_t, StringId, Hash>;
  bool valid = false;  ///< what was interned is known
  bool seen = false;   ///< a packet of it came before
  std::uint32_t clock = 0;
  std::uint64_t default_track = 0;
  bool has_default_track = false;
  std::vector<std::uint64_t> extra_counters;
  std::vector<std::uint64_t> extra_double_counters;
  Numbered names;
  Numbered categories;
  Numbered keys;
  Numbered strings;
  StackTables stacks;
  std::map<std::uint64_t, std::int64_t> counter_sums;  ///< of counters that are sent as differences

  void clear_state();
};

class TrackEvents {
 public:
  TrackEvents(TraceBuilder& builder, formats::Expansion& expansion, Stacks& stacks)
      : builder_(builder), expansion_(expansion), stacks_(stacks) {}

  void intern(Sequence& sequence, const proto::InternedData& data);
  void describe(const proto::TrackDescriptor& descriptor);
  /// `thread` descriptors of old writers make the track of their sequence.
  std::uint64_t describe_thread(const proto::ThreadDescriptor& thread);
  void event(Sequence& sequence, const proto::TrackEvent& event, Ns at);

  /// Pairs begins with ends and hands everything to the builder.
  void finish();

  void name_process(std::int64_t pid, std::string_view name);
  void name_thread(std::int64_t pid, std::int64_t tid, std::string_view name);
  /// The process of a thread, as far as anything in the file said so.
  [[nodiscard]] std::optional<std::int64_t> process_of(std::int64_t tid) const;
  [[nodiscard]] bool knows_processes() const { return !process_names_.empty() || !pids_.empty(); }
  /// A process that the recording describes, not only one that a thread was said to be of.
  void introduce_process(std::int64_t pid);
  /// Processes and their ranks, as said by labels of ours.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& ranks() const { return ranks_; }
  /// Gives the tracks of threads and the processes their names.
  void name_all();

 private:
  enum class Type : std::uint8_t { begin, end, instant };
  struct Event {
    Ns at = 0;
    std::uint32_t track = 0;
    StringId name = 0;
    std::uint32_t arguments = kNone;
    CategoryId category = 0;
    Type type = Type::begin;
  };
  struct Sample {
    Ns at = 0;
    double value = 0;
    std::uint32_t track = 0;
  };
  /// A flow id at the begin or the end of a slice.
  struct FlowEnd {
    std::uint64_t id = 0;
    Ns at = 0;
    std::uint32_t track = 0;
    StringId kind = 0;  ///< 0: unknown
    bool terminating = false;
  };
  struct Arguments {
    StringId flow = 0;
    GpuSlice gpu;
    SliceExtra extra;
    std::uint32_t correlation = 0;
    std::int64_t count = -1;
    std::int64_t total_ns = -1;
    std::int64_t longest_ns = 0;
    std::uint32_t stack = kNone;  ///< where a thread was blocked
    StringId buckets = 0;
    std::int64_t unended = 0;
    StringId waker = 0;              ///< who ended a wait
    StringId context = 0;            ///< in which that was: "interrupt", "softirq"
    std::int32_t event_device = -1;  ///< where an event was recorded that a stream waits for
    std::int32_t event_stream = -1;
    std::int64_t event_record = -1;  ///< correlation id of the call that recorded it
    bool open = false;               ///< it had not ended
    bool gpu_known = false;
    bool extra_known = false;
  };
  struct TrackInfo {
    std::uint64_t parent = 0;
    std::int64_t pid = -1;
    std::int64_t tid = -1;
    StringId name = 0;
    bool described = false;
    bool is_counter = false;
    bool incremental = false;
    std::int64_t multiplier = 1;
    StringId unit = 0;
    TrackId track = kNone;  ///< made when needed
  };

  std::uint32_t track_index(std::uint64_t uuid);
  void legacy(Sequence& sequence, const proto::TrackEvent& event, Ns at, Event row);
  std::uint32_t arguments(const Sequence& sequence, const proto::TrackEvent& event);
  template <class Map, class Entries, class Text>
  void learn(Map& map, const Entries& entries, const Text& text);
  void argument(Arguments& kept, bool& used, std::string_view key, const std::int64_t* number, std::string_view text);
  void sample(Sequence& sequence, std::uint64_t uuid, Ns at, std::int64_t value);
  void sample(std::uint64_t uuid, Ns at, double value);
  void owner(const TrackInfo& info, std::int64_t& pid, std::int64_t& tid) const;
  TrackId builder_track(std::uint32_t index);
  /// The thread itself, where what is blocked has a track of its own below it.
  TrackId blocked_thread(std::uint32_t index);
  void add_slice(const Event& begin, Ns end);
  /// As StackSample::waker; an interrupt has none, and behind a softirq it may be somebody else.
  StringId waker_of(const Arguments& kept);
  void add_instant(const Event& event);
  /// The process and the disk of a track with totals; 0: of no disk.
  std::pair<ProcessId, StringId> owner_and_disk(std::uint32_t track);
  void add_disk_total(const Event& event, const Arguments& kept);
  void add_durations(const Event& event, const Arguments& kept);
  void add_counters();
  void flows(const proto::TrackEvent& event, const Event& row);
  void add_flows();

  TraceBuilder& builder_;
  formats::Expansion& expansion_;
  Stacks& stacks_;
  std::map<std::tuple<ProcessId, StringId, StringId>, std::size_t> durations_;  ///< rows, by process, disk and name
  tsl::hopscotch_map<std::uint64_t, std::uint32_t, Hash> indexes_;              ///< by uuid
  std::vector<TrackInfo> tracks_;
  ChunkedVector<Event> events_;
  ChunkedVector<Sample> samples_;
  std::vector<FlowEnd> flow_ends_;
  ChunkedVector<Arguments> arguments_;
  std::map<std::int64_t, StringId> process_names_;
  std::set<std::int64_t> introduced_;
  std::set<std::int64_t> strangers_;               ///< processes of which only counters tell
  std::map<std::int64_t, StringId> thread_names_;  ///< by tid
  std::map<std::int64_t, std::int64_t> pids_;      ///< by tid
  std::map<std::int64_t, std::int64_t> ranks_;     ///< by pid
};

}  // namespace culprit::perfetto
