// Turns the text of a chunk of events into a Batch.
//
// The fast path lets simdjson iterate the whole chunk. When the parser refuses something, the text is repaired (bytes
// that are no UTF-8, raw control characters); when that does not help, the rest is taken event by event, so that one
// damaged event costs itself and nothing else. Work stays linear in the text even if every event is damaged.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "formats/kineto/batch.h"

namespace culprit::formats::kineto {

/// Bytes that must be writable behind the text given to Extractor::extract.
inline constexpr std::size_t kTail = 80;

/// What to do with an event that the text ends in.
enum class Ending : std::uint8_t {
  more_follows,  ///< report it as unfinished: the rest may be in the next chunk
  give_up,       ///< the text is long enough: an unfinished event before another likely event is damaged
  last,          ///< nothing follows: an unfinished event is a truncated tail
};

/// Reads chunks one after another; keeps the names and tracks it has seen. One per worker thread.
class Extractor {
 public:
  Extractor();
  ~Extractor();
  Extractor(Extractor&&) noexcept;
  Extractor& operator=(Extractor&&) noexcept;

  /// Reads the events of [text, text + size), which begins at an event (or at the end of the array). text[-1] and the
  /// kTail bytes behind the text belong to the caller's buffer and are overwritten.
  void extract(char* text, std::size_t size, Ending ending, Batch& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::formats::kineto
