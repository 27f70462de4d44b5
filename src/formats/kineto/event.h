// One event as it stands in the text, and what becomes of it by its phase.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/string_table.h"
#include "formats/kineto/batch.h"

namespace culprit::formats::kineto {

/// A number, a text without its quotes, or whatever else stands where one of them should. Empty = absent.
struct Scalar {
  std::string_view text;
  bool quoted = false;
  bool operator==(const Scalar&) const = default;
};

/// What of "args" is read. Every argument that is there but cannot be used (a negative size, a text where a number
/// should be) is left out, and has its bit in `invalid`.
struct Arguments {
  enum Field : std::uint8_t {
    device,
    stream,
    context,
    registers,
    shared_memory,
    bytes,
    grid,
    block,
    occupancy,
    last_of_gpu = occupancy,
    correlation,
    sequence,
    forward_thread,
    graph_node,
    elements,
    collective,
    group,
    event_device,
    event_stream,
    event_record,
    hostname,
    name,
    labels,
    nested,
    all,  ///< "args" is no object
  };
  struct Value {
    std::string_view key;
    std::optional<double> value;  ///< nothing when it is no finite number
    bool known = false;           ///< the key means something else: no counter of a profiler range
  };

  std::uint32_t invalid = 0;     ///< bits of Field
  std::uint32_t seen = 0;        ///< bits of Field
  bool has_extra = false;        ///< something in `extra` is worth keeping
  std::string_view nested_text;  ///< arguments as JSON in a text
  std::string_view name_text;    ///< of metadata
  std::string_view labels_text;  ///< of metadata
  std::string_view host;
  std::string_view collective_name;
  std::string_view group_name;
  std::int64_t correlation_id = 0;
  std::int64_t event_device_id = -1;  ///< where the event was recorded that a stream waits for; Culprit's own argument
  std::int64_t event_stream_id = -1;
  std::int64_t event_record_id = -1;  ///< correlation id of the call that recorded it
  std::uint32_t external_id = 0;      ///< ascends with the begin of operators and annotations
  std::uint32_t python_id = 0;        ///< ascends with the begin of Python functions
  GpuSlice gpu;
  double occupancy_percent = -1;
  SliceExtra extra;
};

/// Views into the text, or into what the parser unescaped.
struct Event {
  enum Member : std::uint8_t { ph, name_, cat, ts_, dur_, pid_, tid_, id_, args_ };

  bool may_escape = true;  ///< the text has a backslash somewhere; stays when the event is cleared
  char phase = 0;
  bool bad_escape = false;
  bool category_invalid = false;
  bool holds_trace = false;  ///< has "traceEvents": a whole trace stands where an event should
  bool local_id = false;     ///< the id counts within the process
  std::uint32_t seen = 0;    ///< bits of Member
  std::uint32_t repeated = 0;
  std::optional<std::string_view> name;
  std::string_view category;
  std::string_view ts;
  std::string_view dur;
  Scalar pid;
  Scalar tid;
  std::string_view id;
  Arguments args;
  std::vector<Arguments::Value> values;  ///< numeric arguments of what may be a counter or a profiler range

  void clear();
  void clear_arguments();
};

/// A call of PyTorch's allocators (profile_memory): a point in time that says what a device's memory holds.
inline bool is_memory_event(std::string_view name) { return name == "[memory]" || name == "[OutOfMemory]"; }

/// Gives names, tracks and categories the numbers of one worker and appends events to its batch.
class EventSink {
 public:
  EventSink();
  /// To be called before the events of a batch.
  void begin(Batch& batch);
  void emit(Event& event, Batch& batch);
  /// Puts what is new since the last call into `batch`.
  void hand_over(Batch& batch);

 private:
  std::uint32_t track(const Event& event, Batch& batch);
  std::uint16_t category(std::string_view name, Batch& batch);
  void slice(Event& event, Ns ts, Batch& batch);
  void half(const Event& event, Ns ts, Batch& batch);
  void counter(Event& event, Ns ts, Batch& batch);
  void memory(Event& event, Ns ts, Batch& batch);
  void metadata(const Event& event, Batch& batch);
  StringId name_of(const Event& event);

  struct KeyHash {
    std::size_t operator()(const TrackKey& key) const {
      return hash_parts(key.pid, key.tid, key.pid_text, key.tid_text, key.kind);
    }
  };
  /// What was asked for last, by what tells most of them apart: an event of the same thread, or category, needs no
  /// look-up.
  struct KnownTrack {
    std::string pid, tid;
    bool pid_quoted = false, tid_quoted = false;
    bool valid = true;
    std::uint32_t id = kNone;
  };
  struct KnownCategory {
    std::string_view name;  ///< in strings_
    std::uint16_t id = 0;
  };

  StringTable strings_;
  std::size_t strings_handed_ = 1;
  StringId occupancy_ = 0;
  StringId no_name_ = 0;
  tsl::hopscotch_map<TrackKey, std::uint32_t, KeyHash> track_ids_;
  std::vector<TrackKey> tracks_;
  std::size_t tracks_handed_ = 0;
  tsl::hopscotch_map<StringId, std::uint16_t, Hash> category_ids_;
  std::vector<StringId> categories_;
  std::vector<SliceClass> classes_;
  std::size_t categories_handed_ = 0;
  std::array<KnownTrack, 16> known_tracks_;
  std::array<KnownCategory, 16> known_categories_;
  std::string scratch_;
};

}  // namespace culprit::formats::kineto
