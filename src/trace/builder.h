// Builds a Trace from events in the order of the input.
//
// Readers hand over rows with ids of this builder; what needs more than one event (begin/end pairs, asynchronous
// slices, flows, the host call behind GPU work) is resolved in finish(), by what the events say and not by where they
// stand: the same events in another order give the same trace, but for the order of its rows. One thing only the order
// can tell: which of the begins and ends of one moment on one thread belong together when the ends carry no names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/error.h"
#include "core/hash.h"
#include "trace/category_table.h"
#include "trace/trace.h"

namespace culprit {

/// Limits that keep sums of a begin, an offset between files and a duration inside int64.
inline constexpr Ns kMaxTime = 3'000'000'000'000'000'000;      ///< about the year 2065
inline constexpr Ns kMaxDuration = 1'000'000'000'000'000'000;  ///< about 31 years
/// Old profilers write Unix microseconds and no base: what begins after 2004 without one is taken for that.
inline constexpr Ns kUnixTime = 1'100'000'000'000'000'000;
inline constexpr std::size_t kMaxTracks = std::size_t{4} << 20;

/// A thread as the input names it: numbers, texts, or both.
struct TrackKey {
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  StringId pid_text = 0;
  StringId tid_text = 0;
  TrackKind kind = TrackKind::thread;
  bool operator==(const TrackKey&) const = default;
};

/// A begin or an end that waits for its partner.
struct OpenEvent {
  Ns at = 0;
  std::uint64_t id = 0;  ///< asynchronous slices and flows: hash of the id in its scope
  StringId name = 0;
  TrackId track = 0;
  CategoryId category = 0;
  char phase = 'B';               ///< B E (same thread), b e n (asynchronous), s t f (flow)
  std::uint32_t correlation = 0;  ///< of a slice that begins here; of a flow: the correlation id that its id repeats
};

class TraceBuilder {
 public:
  /// One builder reads one file: `rank` describes it.
  explicit TraceBuilder(Rank rank);

  StringId intern(std::string_view text) { return trace_.strings.intern(text); }
  CategoryId category(std::string_view name);
  ProcessId process(std::int64_t pid, StringId pid_text);
  TrackId track(const TrackKey& key);

  SliceIndex add(const Slice& slice);
  /// Before add(), of a slice without correlation id: where slices of one class and span are calls of each other, lower
  /// numbers call higher ones. 0 = unknown.
  static void number_call(Slice& slice, std::uint32_t number);
  static std::uint32_t correlation_of(const Slice& slice) { return slice.rank == kNumbered ? 0 : slice.correlation; }
  SliceIndex add(const Slice& slice, const GpuSlice& gpu);
  std::uint32_t add(const SliceExtra& extra);
  /// The row of a frame of call stacks; the same frame gives the same row.
  std::uint32_t frame(const StackFrame& frame);
  void add(const StackSample& sample) { trace_.stack_samples.push_back(sample); }
  void add(const Instant& instant) { trace_.instants.push_back(instant); }
  void add(const OpenEvent& event) { open_.push_back(event); }
  void add_counter(StringId name, ProcessId process, TrackId track, CounterSample sample);
  /// Names given by metadata. Of several names for one thing the longest counts, then the last in the alphabet.
  void name_thread(TrackId track, StringId name);
  void name_process(ProcessId process, StringId name);
  void label_process(ProcessId process, StringId labels);

  Losses& losses() { return trace_.losses; }
  Rank& rank() { return trace_.ranks.front(); }
  Trace& trace() { return trace_; }

  /// Pairs what is open, numbers processes, tracks, categories and counters in an order of their own, links GPU work to
  /// its launchers, counts slices per track.
  Trace finish() &&;

 private:
  using OpenIndex = std::uint32_t;  ///< of open_
  /// In Slice::rank, which is 0 while one file is read: the correlation id is the number of a call.
  static constexpr std::uint16_t kNumbered = 1;

  void pair_begin_end();
  void pair_stack(std::span<const OpenIndex> events, Ns last);
  void pair_async();
  void pair_named(std::span<OpenIndex> events, Ns last);
  void close(const OpenEvent& begin, Ns end);
  [[nodiscard]] Ns latest() const;
  [[nodiscard]] bool same_names(std::span<const OpenIndex> events) const;
  [[nodiscard]] bool track_before(TrackId a, TrackId b) const;
  void number_rows();
  void link_launchers();
  void bind_flows();
  [[nodiscard]] StringId better_name(StringId a, StringId b) const;

  struct CounterKey {
    StringId name;
    ProcessId process;
    TrackId track;  ///< counters of several devices have one name and differ in the track only
    bool operator==(const CounterKey&) const = default;
  };
  struct FrameHash {
    std::size_t operator()(const StackFrame& frame) const {
      return hash_parts(frame.caller, frame.function, frame.module, frame.kernel);
    }
  };
  struct KeyHash {
    std::size_t operator()(const TrackKey& key) const {
      return hash_parts(key.pid, key.tid, key.pid_text, key.tid_text, key.kind);
    }
    std::size_t operator()(const CounterKey& key) const { return hash_parts(key.name, key.process, key.track); }
  };

  Trace trace_;
  std::vector<TrackKey> keys_;  // by track
  tsl::hopscotch_map<TrackKey, TrackId, KeyHash> track_ids_;
  tsl::hopscotch_map<TrackKey, ProcessId, KeyHash> process_ids_;
  tsl::hopscotch_map<CounterKey, std::size_t, KeyHash> counter_ids_;
  tsl::hopscotch_map<TrackId, StringId, Hash> thread_names_;  // from metadata
  tsl::hopscotch_map<StackFrame, std::uint32_t, FrameHash> frame_ids_;
  CategoryTable categories_;
  ChunkedVector<OpenEvent> open_;
};

/// One run from the traces of its ranks, by their numbers where all have one of their own, else in the order given.
/// Times are put on one base; ranks without a common clock are aligned at their first event and counted as
/// clock_unknown.
Trace merge(std::vector<Trace> traces);
/// The same in the order given, whatever their numbers.
Trace merge_in_order(std::vector<Trace> traces);

}  // namespace culprit
