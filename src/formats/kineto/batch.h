// What one chunk of text becomes before it joins the trace: rows whose names, tracks and categories are numbers of the
// worker that read the chunk. The committing thread translates them, so that workers share nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/builder.h"

namespace culprit::formats::kineto {

enum class MetadataKind : std::uint8_t { process_name, process_labels, thread_name };

struct Metadata {
  MetadataKind kind;
  std::uint32_t track;
  StringId text;
};

struct CounterEvent {
  Ns at;
  double value;
  StringId name;
  std::uint32_t track;
  bool of_process = false;  ///< the track only tells whose
};

/// A counter of the slice with this row of Batch::slices.
struct MetricEvent {
  std::uint32_t slice;
  StringId name;
  double value;
};

/// How far into its text a chunk could be read.
enum class Stop : std::uint8_t {
  complete,    ///< every event of the text was read
  array_end,   ///< traceEvents ends inside the text
  unfinished,  ///< the text ends inside an event: the cut was in the wrong place, or the file ends here
};

struct Batch {
  std::vector<Slice> slices;
  std::vector<GpuSlice> gpu;
  std::vector<SliceExtra> extras;
  std::vector<OpenEvent> open;
  std::vector<Instant> instants;
  std::vector<CounterEvent> counters;
  std::vector<Metadata> metadata;
  std::vector<MetricEvent> metrics;
  std::vector<StreamWait> waits;  ///< with rows of `slices`
  // New numbers of the worker since its last batch, in order.
  std::vector<std::string_view> new_strings;
  std::vector<TrackKey> new_tracks;
  std::vector<StringId> new_categories;
  bool categories_anew = false;  ///< the worker numbers its categories from 0 again
  Losses losses;
  std::array<std::size_t, Losses::kReasons> first{};  ///< where in the text each reason was first met
  std::size_t at = 0;                                 ///< where in the text the event at hand begins
  std::uint64_t events = 0;
  std::string host;  ///< the first "hostname" argument in the alphabet
  Stop stop = Stop::complete;
  std::size_t stop_at = 0;  ///< offset in the text: after the array's end, or where the unfinished event begins

  void clear();
  /// Counts a loss at the event at hand.
  void lose(LossReason reason, std::uint64_t n = 1) {
    if (n != 0 && losses[reason] == 0) first[static_cast<std::size_t>(reason)] = at;
    losses.add(reason, n);
  }
};

}  // namespace culprit::formats::kineto
