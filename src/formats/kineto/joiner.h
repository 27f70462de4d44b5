// Joins what the workers made of pieces of text into one trace, in the order of the text, and repairs cuts in the wrong
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "formats/kineto/conveyor.h"
#include "formats/kineto/envelope.h"
#include "trace/builder.h"

namespace culprit::formats::kineto {

/// Larger events are skipped and counted.
inline constexpr std::size_t kMaxEvent = std::size_t{64} << 20;

class Joiner {
 public:
  Joiner(TraceBuilder& builder, Envelope& envelope, std::size_t workers)
      : builder_(builder), envelope_(envelope), translations_(workers + 1) {}

  /// Takes the chunks in the order of the text.
  void take(const Chunk& chunk);

  [[nodiscard]] bool array_ended() const { return in_epilogue_; }

 private:
  /// Numbers of one worker in terms of the trace. A piece that was read from a wrong begin numbers texts and tracks
  /// that do not exist: they become part of the trace when something that does exist names them, if ever.
  struct Translation {
    std::vector<StringId> strings{0};
    tsl::hopscotch_map<StringId, std::string_view, Hash> texts;  // not in the trace yet
    std::vector<TrackKey> keys;
    std::vector<TrackId> tracks;
    std::vector<StringId> category_names{0};
    std::vector<std::uint32_t> categories{0};
  };

  void learn(const Batch& batch, Translation& t, bool certain);
  StringId string(Translation& t, StringId id);
  TrackId track(Translation& t, std::uint32_t id);
  CategoryId category(Translation& t, std::uint32_t id);
  [[nodiscard]] std::string place(std::uint64_t offset);
  void count(const Batch& batch, std::uint64_t offset);
  void retry(Ending ending);
  void apply(const Batch& batch, Translation& t, std::string_view text, std::uint64_t offset);
  void apply(const Metadata& metadata, Translation& t);

  TraceBuilder& builder_;
  Envelope& envelope_;
  std::vector<Translation> translations_;
  Extractor own_;
  Batch own_batch_;
  std::string pending_;  // text that ended inside an event, waiting for what follows
  std::uint64_t pending_offset_ = 0;
  std::size_t next_try_ = 0;
  bool in_epilogue_ = false;
};

}  // namespace culprit::formats::kineto
