#include "core/escape.h"

#include <fmt/format.h>

#include <iterator>

#include "core/utf8.h"

namespace culprit {

namespace {

void append_visible(std::string& out, char32_t c) {
  if (c < 0x80)
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
  else
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
}

void append_bytes(std::string& out, std::string_view bytes) {
  for (char b : bytes) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(b));
}

std::string make_visible(std::string_view text, std::string_view kept_controls) {
  std::string out;
  out.reserve(text.size());
  each_code_point(
      text,
      [&](char32_t c, std::string_view bytes) {
        const bool kept = c < 0x80 && kept_controls.find(static_cast<char>(c)) != std::string_view::npos;
        if (!kept && is_disruptive(c))
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

bool is_disruptive(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
  const bool reordering = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f ||
                          c == 0x061c || c == 0x2028 || c == 0x2029;
  return control || reordering;
}

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

}  // namespace culprit
