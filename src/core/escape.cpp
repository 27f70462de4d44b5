#include "core/escape.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace culprit {

namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< bytes taken; for an invalid sequence, those of its longest valid beginning
  bool valid = true;
};

/// The code point at text[i] (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
CodePoint decode(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
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
    if (i + k >= text.size()) return {lead, k, false};
    const unsigned char next = byte(i + k);
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

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c <= 0x9f); }

/// Marks that reorder or break the line they stand in: bidirectional controls, line and paragraph separators.
bool is_reordering(char32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x061c ||
         c == 0x2028 || c == 0x2029;
}

bool is_wide(char32_t c) {
  constexpr std::array<std::array<char32_t, 2>, 14> kRanges = {{{0x1100, 0x115f},
                                                                {0x2e80, 0x303e},
                                                                {0x3041, 0x33ff},
                                                                {0x3400, 0x4dbf},
                                                                {0x4e00, 0x9fff},
                                                                {0xa000, 0xa4cf},
                                                                {0xac00, 0xd7a3},
                                                                {0xf900, 0xfaff},
                                                                {0xfe30, 0xfe6f},
                                                                {0xff00, 0xff60},
                                                                {0xffe0, 0xffe6},
                                                                {0x1f300, 0x1f64f},
                                                                {0x1f900, 0x1f9ff},
                                                                {0x20000, 0x3fffd}}};
  for (const auto& [first, last] : kRanges)
    if (c >= first && c <= last) return true;
  return false;
}

void append_visible(std::string& out, char32_t c) {
  if (c < 0x80)
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
  else
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
}

void append_bytes(std::string& out, std::string_view bytes) {
  for (char b : bytes) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(b));
}

/// Calls on_valid(code point, its bytes) or on_invalid(bytes) for every part of `text`.
template <class OnValid, class OnInvalid>
void for_each_code_point(std::string_view text, OnValid on_valid, OnInvalid on_invalid) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode(text, i);
    const std::string_view bytes = text.substr(i, c.length);
    c.valid ? on_valid(c.value, bytes) : on_invalid(bytes);
    i += c.length;
  }
}

std::string make_visible(std::string_view text, std::string_view kept_controls) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(
      text,
      [&](char32_t c, std::string_view bytes) {
        const bool kept = c < 0x80 && kept_controls.find(static_cast<char>(c)) != std::string_view::npos;
        if (!kept && (is_control(c) || is_reordering(c)))
          append_visible(out, c);
        else
          out += bytes;
      },
      [&](std::string_view bytes) { append_bytes(out, bytes); });
  return out;
}

/// Digits with an optional sign, point and exponent, and nothing else.
bool is_plain_number(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - start;
  };
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  std::size_t mantissa = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

}  // namespace

std::string escape_terminal(std::string_view text) { return make_visible(text, {}); }

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (char c : escape_terminal(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '|':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '~':
      case '\\':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_csv(std::string_view text) {
  std::string safe = make_visible(text, "\t\n\r");
  if (!safe.empty() && std::string_view("=+-@\t\r").find(safe.front()) != std::string_view::npos &&
      !is_plain_number(safe))
    safe.insert(safe.begin(), '\'');
  const bool quoted = safe.find_first_of(",\"\n\r") != std::string::npos ||
                      (!safe.empty() && (safe.front() == ' ' || safe.back() == ' '));
  if (!quoted) return safe;
  std::string out = "\"";
  for (char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : escape_terminal(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(
      text,
      [&](char32_t c, std::string_view bytes) {
        switch (c) {
          case '"':
            out += "\\\"";
            return;
          case '\\':
            out += "\\\\";
            return;
          case '\n':
            out += "\\n";
            return;
          case '\r':
            out += "\\r";
            return;
          case '\t':
            out += "\\t";
            return;
          default:
            break;
        }
        if (is_control(c) || is_reordering(c) || c == '<' || c == '>' || c == '&')
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        else
          out += bytes;
      },
      [&](std::string_view) { out += "\xef\xbf\xbd"; });
  return out;
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(
      text, [&](char32_t, std::string_view bytes) { out += bytes; }, [&](std::string_view) { out += "\xef\xbf\xbd"; });
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for_each_code_point(
      text, [&](char32_t c, std::string_view) { width += is_wide(c) ? 2u : 1u; },
      [&](std::string_view bytes) { width += bytes.size(); });
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (text.size() <= width || display_width(text) <= width) return std::string(text);
  constexpr std::string_view kCut = "...";
  if (width <= kCut.size()) return std::string(kCut.substr(0, width));
  std::size_t columns = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const CodePoint c = decode(text, i);
    const std::size_t next = c.valid ? (is_wide(c.value) ? 2u : 1u) : c.length;
    if (columns + next > width - kCut.size()) break;
    columns += next;
    i += c.length;
  }
  return std::string(text.substr(0, i)) + std::string(kCut);
}

}  // namespace culprit
