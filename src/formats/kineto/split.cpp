#include "formats/kineto/split.h"

#include <array>
#include <cstring>

#include "core/utf8.h"

namespace culprit::formats::kineto {

namespace {

/// True when text[open] == '{' follows '}' and ','.
bool follows_event(std::string_view text, std::size_t open) {
  std::size_t i = open;
  while (i > 0 && is_json_space(text[i - 1])) --i;
  if (i == 0 || text[i - 1] != ',') return false;
  --i;
  while (i > 0 && is_json_space(text[i - 1])) --i;
  return i > 0 && text[i - 1] == '}';
}

bool opens_with_event_key(std::string_view text, std::size_t open) {
  constexpr std::array<std::string_view, 9> kKeys = {"ph\"",  "name\"", "cat\"", "ts\"", "pid\"",
                                                     "tid\"", "args\"", "id\"",  "dur\""};
  std::size_t i = open + 1;
  while (i < text.size() && is_json_space(text[i])) ++i;
  if (i >= text.size() || text[i] != '"') return false;
  const std::string_view rest = text.substr(i + 1, 8);
  for (std::string_view key : kKeys)
    if (rest.starts_with(key)) return true;
  return false;
}

}  // namespace

std::size_t last_boundary(std::string_view text) {
  for (std::size_t i = text.rfind('{'); i != npos && i > 0; i = text.rfind('{', i - 1))
    if (follows_event(text, i)) return i;
  return npos;
}

std::size_t next_event(std::string_view text, std::size_t from) {
  for (std::size_t i = text.find('{', from); i != npos; i = text.find('{', i + 1))
    if (follows_event(text, i) && opens_with_event_key(text, i)) return i;
  return npos;
}

EventSpan scan_event(std::string_view text, std::size_t begin, std::size_t limit) {
  // The kinds of the first 64 open brackets are remembered; deeper ones are only counted.
  std::uint64_t squares = 0;
  std::size_t depth = 0;
  limit = limit < text.size() ? limit : text.size();
  for (std::size_t i = begin; i < limit; ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < limit && text[i] != '"'; ++i) {
          if (text[i] == '\\')
            ++i;
          else if (static_cast<unsigned char>(text[i]) < 0x20)
            return {EventSpan::State::broken, i};
        }
        if (i >= limit) return {EventSpan::State::unfinished, limit};
        break;
      case '{':
      case '[':
        if (depth < 64) squares = (squares & ~(std::uint64_t{1} << depth)) | std::uint64_t{text[i] == '['} << depth;
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        if (depth < 64 && ((squares >> depth & 1) != 0) != (text[i] == ']')) return {EventSpan::State::broken, i};
        if (depth == 0) return {EventSpan::State::closed, i + 1};
        break;
      default:
        break;
    }
  }
  return {EventSpan::State::unfinished, limit};
}

Repairs repair(char* text, std::size_t size) {
  Repairs repairs;
  bool in_string = false;
  for (std::size_t i = 0; i < size;) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const CodePoint point = decode_utf8({text, size}, i);
      if (!point.valid) {
        text[i] = '?';
        ++repairs.utf8;
      }
      i += point.valid ? point.length : 1;
      continue;
    }
    if (c == '"')
      in_string = !in_string;
    else if (c == '\\' && in_string)
      ++i;  // whatever is escaped is no end of the string
    if (c < 0x20 && (in_string || !is_json_space(text[i]))) {
      text[i] = ' ';
      ++repairs.control;
    }
    ++i;
  }
  return repairs;
}

}  // namespace culprit::formats::kineto
