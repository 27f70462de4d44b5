// Builds a Trace from events in the order of the input.
//
// Readers hand over rows with ids of this builder; what needs more than one event (begin/end pairs, asynchronous
// slices, flows, the host call behind GPU work) is resolved in finish(), so that the order of the input does not
// matter.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/error.h"
#include "trace/trace.h"

namespace culprit {

/// Limits that keep sums of a begin, an offset between files and a duration inside int64.
inline constexpr Ns kMaxTime = 3'000'000'000'000'000'000;      ///< about the year 2065
inline constexpr Ns kMaxDuration = 1'000'000'000'000'000'000;  ///< about 31 years
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
  std::uint32_t correlation = 0;  ///< of a slice that begins here
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
  SliceIndex add(const Slice& slice, const GpuSlice& gpu);
  std::uint32_t add(const SliceExtra& extra);
  void add(const Instant& instant) { trace_.instants.push_back(instant); }
  void add(const OpenEvent& event) { open_.push_back(event); }
  void add_counter(StringId name, ProcessId process, TrackId track, CounterSample sample);

  Losses& losses() { return trace_.losses; }
  Rank& rank() { return trace_.ranks.front(); }
  Trace& trace() { return trace_; }

  /// Pairs what is open, links GPU work to its launchers, counts slices per track.
  Trace finish() &&;

 private:
  void pair_begin_end();
  void pair_async();
  void link_launchers();
  void bind_flows();

  struct KeyHash {
    std::size_t operator()(const TrackKey& key) const;
  };
  struct CounterKey {
    StringId name;
    ProcessId process;
    TrackId track;  ///< counters of several devices have one name and differ in the track only
    bool operator==(const CounterKey&) const = default;
  };
  struct CounterHash {
    std::size_t operator()(const CounterKey& key) const {
      const std::size_t where = static_cast<std::size_t>(key.process) * 0x9e3779b97f4a7c15ULL + key.track;
      return (static_cast<std::size_t>(key.name) ^ where) * 0x9e3779b97f4a7c15ULL >> 7;
    }
  };

  Trace trace_;
  tsl::hopscotch_map<TrackKey, TrackId, KeyHash> track_ids_;
  tsl::hopscotch_map<TrackKey, ProcessId, KeyHash> process_ids_;
  tsl::hopscotch_map<CounterKey, std::size_t, CounterHash> counter_ids_;
  tsl::hopscotch_map<StringId, CategoryId> category_ids_;
  ChunkedVector<OpenEvent> open_;
};

/// One run from the traces of its ranks, in the order given. Times are put on one base; ranks without a common clock
/// are aligned at their first event and counted as clock_unknown.
Trace merge(std::vector<Trace> traces);

}  // namespace culprit
