#include "core/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace culprit {

CodePoint decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = 0;
  char32_t value = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
    value = lead & 0x1fu;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    value = lead & 0x0fu;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    value = lead & 0x07u;
  } else {
    return {lead, 1, false};
  }
  for (std::size_t k = 1; k < length; ++k) {
    if (at + k >= text.size()) return {lead, k, false};
    const unsigned char next = byte(at + k);
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (k == 1) {
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    }
    if (next < low || next > high) return {lead, k, false};
    value = (value << 6) | (next & 0x3fu);
  }
  return {value, length, true};
}

std::string repair_utf8(std::string_view text) {
  const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return std::string(text);  // as nearly all names are
  std::string out;
  out.reserve(text.size());
  each_code_point(
      text, [&](char32_t, std::string_view bytes) { out += bytes; },
      [&](std::string_view) { out += kReplacementCharacter; });
  return out;
}

void append_utf8(std::string& to, char32_t value) {
  utf8proc_uint8_t bytes[4];
  const auto point = static_cast<utf8proc_int32_t>(value);
  if (!utf8proc_codepoint_valid(point)) {
    to += kReplacementCharacter;
    return;
  }
  const utf8proc_ssize_t length = utf8proc_encode_char(point, bytes);
  to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

}  // namespace culprit
