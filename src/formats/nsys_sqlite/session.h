// What all tables of one database share while it is read: its strings, threads, streams and correlation ids.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/string_table.h"
#include "trace/builder.h"

namespace culprit::formats::nsys_sqlite {

/// 64-bit ids: hardware (8 bits), virtual machine (8), process (24), thread (24).
constexpr std::int64_t pid_of(std::int64_t global) { return (global >> 24) & 0xffffff; }
constexpr std::int64_t tid_of(std::int64_t global) { return global & 0xffffff; }
constexpr std::int64_t machine_of(std::int64_t global) { return (global >> 48) & 0xffff; }

/// Where an event was recorded.
struct EventRecord {
  std::uint32_t correlation = 0;  ///< of the call
  std::int32_t device = -1;
  std::int32_t stream = -1;
};

class Session {
 public:
  Session(TraceBuilder& builder, std::string path) : builder_(builder), path_(std::move(path)) {}

  TraceBuilder& builder() { return builder_; }

  /// A row of StringIds.
  void learn_string(std::int64_t id, std::string_view text);
  /// The text of an id in the trace; "(no name)" counts as name_invalid.
  StringId string(std::int64_t id);
  void learn_thread_name(std::int64_t global_tid, std::int64_t name) { thread_names_[global_tid] = name; }
  void learn_process_name(std::int64_t global_pid, std::string_view name);

  /// The thread, or a lane beside it for what does not nest with its calls ("scheduling").
  TrackId thread(std::int64_t global_tid, std::string_view lane = {});
  TrackId stream(std::int64_t global_pid, std::int64_t device, std::int64_t context, std::int64_t stream);
  /// A correlation id that is unique over the processes of the file; 0 = none.
  std::uint32_t correlation(std::int64_t global, std::int64_t id);
  /// The number that a record of an event and what waits for it have in common.
  void learn_event(std::int64_t global_pid, std::int64_t sync_id, const EventRecord& record) {
    events_[{global_pid >> 24, sync_id}] = record;
  }
  /// nullptr: it is not known.
  [[nodiscard]] const EventRecord* event(std::int64_t global_pid, std::int64_t sync_id) const {
    const auto found = events_.find({global_pid >> 24, sync_id});
    return found == events_.end() ? nullptr : &found->second;
  }

  /// Checks begin and end. False (and counted) when the span cannot be kept.
  bool span(std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::string_view table, Slice& slice);
  /// Checks a point in time, counted when it cannot be kept.
  bool moment(std::optional<std::int64_t> at, std::string_view table);
  /// Counts a loss of `table`.
  void lose(LossReason reason, std::string_view table);

 private:
  StringId process_text(std::int64_t global);

  struct Word {
    StringId local = 0;
    StringId in_trace = kNone;
  };

  TraceBuilder& builder_;
  std::string path_;
  StringTable texts_;
  tsl::hopscotch_map<std::int64_t, Word, Hash> words_;
  tsl::hopscotch_map<std::int64_t, std::int64_t, Hash> thread_names_;
  tsl::hopscotch_map<std::int64_t, StringId, Hash> process_names_;
  tsl::hopscotch_map<std::int64_t, TrackId, Hash> threads_;
  std::array<std::int64_t, 4> last_stream_key_{};
  TrackId last_stream_ = kNone;
  std::int64_t machine_ = -1;
  std::int64_t first_process_ = -1;
  tsl::hopscotch_map<std::pair<std::int64_t, std::int64_t>, std::uint32_t, Hash> correlations_;
  tsl::hopscotch_map<std::pair<std::int64_t, std::int64_t>, EventRecord, Hash> events_;
};

}  // namespace culprit::formats::nsys_sqlite
