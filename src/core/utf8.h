// Text of traces claims to be UTF-8 and often is not: one decoder that says where it is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< bytes taken; for an invalid sequence, those of its longest valid beginning
  bool valid = true;
};

/// The code point at text[at], which exists (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above
/// U+10FFFF).
CodePoint decode_utf8(std::string_view text, std::size_t at);

/// Calls on_valid(code point, its bytes) or on_invalid(bytes) for every part of `text`.
template <class OnValid, class OnInvalid>
void each_code_point(std::string_view text, OnValid&& on_valid, OnInvalid&& on_invalid) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    c.valid ? on_valid(c.value, bytes) : on_invalid(bytes);
    at += c.length;
  }
}

/// U+FFFD as UTF-8: stands for what was not valid.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// `text` with invalid sequences replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

/// Appends a code point; U+FFFD for what is none.
void append_utf8(std::string& to, char32_t value);

}  // namespace culprit
