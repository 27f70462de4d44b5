// Finding event boundaries in JSON text without parsing it, and repairing text that a JSON parser refuses whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace culprit::formats::kineto {

inline constexpr std::size_t npos = std::string_view::npos;

constexpr bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Position of the last '{' that follows "}" and ",": a likely begin of an event. It may be wrong (inside a string or a
/// nested list); whoever reads the text before it finds out. npos if there is none.
std::size_t last_boundary(std::string_view text);

/// Position of the next '{' at or after `from` that follows "}" and "," and opens with a key that events have.
std::size_t next_event(std::string_view text, std::size_t from);

struct EventSpan {
  enum class State : std::uint8_t { closed, unfinished, broken } state = State::unfinished;
  std::size_t end = 0;  ///< closed: one past the '}'
};

/// The extent of the object that begins at text[begin] == '{', by strings and brackets alone, looking at most until
/// `limit`. broken: brackets that do not match or a control character inside a string.
EventSpan scan_event(std::string_view text, std::size_t begin, std::size_t limit);

struct Repairs {
  std::uint64_t utf8 = 0;
  std::uint64_t control = 0;
};

/// Replaces every byte of an invalid UTF-8 sequence by '?', and control characters inside strings by spaces, in place.
Repairs repair(char* text, std::size_t size);

}  // namespace culprit::formats::kineto
