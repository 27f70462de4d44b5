// One event as it stands in the text, and what becomes of it by its phase.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/string_table.h"
#include "formats/kineto/batch.h"

namespace culprit::formats::kineto {

/// Category of the events that carry hardware counters of one kernel.
inline constexpr std::string_view kCounterRange = "cuda_profiler_range";

/// Views into the text; an empty view means the member was absent.
struct Event {
  static constexpr std::size_t kMaxValues = 64;

  char phase = 0;
  bool bad_escape = false;
  bool has_extra = false;  ///< something in `extra` is worth keeping
  std::optional<std::string_view> name;
  std::string_view category;
  std::string_view ts;
  std::string_view dur;
  std::string_view pid;  ///< token, with quotes when it is text
  std::string_view tid;
  std::string_view id;
  std::string_view nested_args;
  std::string_view metadata;  ///< args.name or args.labels
  std::string_view hostname;
  std::string_view collective;
  std::string_view group;
  std::int64_t correlation = 0;
  std::int64_t stream = -1;
  std::int64_t device = -1;
  std::int64_t context = 0;
  std::int64_t registers = 0;
  std::int64_t shared_memory = 0;
  double occupancy = -1;  ///< percent
  std::uint64_t bytes = 0;
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  SliceExtra extra;
  std::vector<std::pair<std::string_view, std::optional<double>>>
      values;  ///< numeric args of counters and profiler ranges

  void clear();
};

/// Gives names, tracks and categories the numbers of one worker and appends events to its batch.
class EventSink {
 public:
  EventSink();
  void emit(const Event& event, Batch& batch);
  /// Puts what is new since the last call into `batch`.
  void hand_over(Batch& batch);

 private:
  std::uint32_t track(const Event& event, TrackKind kind, Batch& batch);
  std::uint16_t category(std::string_view name);
  void slice(const Event& event, Ns ts, Batch& batch);
  void metadata(const Event& event, Batch& batch);

  struct KeyHash {
    std::size_t operator()(const TrackKey& key) const;
  };

  StringTable strings_;
  std::size_t strings_handed_ = 1;
  tsl::hopscotch_map<TrackKey, std::uint32_t, KeyHash> track_ids_;
  std::vector<TrackKey> tracks_;
  std::size_t tracks_handed_ = 0;
  tsl::hopscotch_map<StringId, std::uint16_t> category_ids_;
  std::vector<StringId> categories_;
  std::vector<SliceClass> classes_;
  std::size_t categories_handed_ = 0;
  TrackKey last_key_;
  std::uint32_t last_track_ = kNone;
  std::string scratch_;
};

}  // namespace culprit::formats::kineto
