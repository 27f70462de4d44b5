#include "core/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>

#include "core/escape.h"
#include "core/utf8.h"

namespace culprit {

namespace {

using PlainBytes = std::array<bool, 256>;

/// Which bytes stand for themselves in a string.
constexpr PlainBytes plain_bytes(std::string_view escaped) {
  PlainBytes plain{};
  for (std::size_t c = 0x20; c < 0x7f; ++c) plain[c] = true;
  for (const char c : escaped) plain[static_cast<unsigned char>(c)] = false;
  return plain;
}
constexpr PlainBytes kPlainInScripts = plain_bytes("\"\\<>&");
constexpr PlainBytes kPlain = plain_bytes("\"\\");

/// Of a code point that is not plain.
void append_escaped(std::string& out, char32_t c, std::string_view bytes) {
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
  if (is_disruptive(c) || c < 0x80)
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  else
    out += bytes;
}

void append_string(std::string& out, std::string_view text, const PlainBytes& plain = kPlainInScripts) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && plain[static_cast<unsigned char>(text[end])]) ++end;
    out.append(text, at, end - at);
    at = end;
    if (at == text.size()) break;
    const CodePoint c = decode_utf8(text, at);
    if (c.valid)
      append_escaped(out, c.value, text.substr(at, c.length));
    else
      out += kReplacementCharacter;
    at += c.length;
  }
  out += '"';
}

}  // namespace

std::string json_string(std::string_view text, JsonEscapes escapes) {
  std::string out;
  out.reserve(text.size() + 2);
  append_string(out, text, escapes == JsonEscapes::least ? kPlain : kPlainInScripts);
  return out;
}

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

void JsonWriter::lead() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  const bool first = level.empty;
  level.empty = false;
  if (!first) out_ += ',';
  if (level.form == JsonForm::lines)
    new_line();
  else if (!first && level.form == JsonForm::line)
    out_ += ' ';
}

void JsonWriter::before_value() {
  assert(key_open_ == (!levels_.empty() && levels_.back().open == '{'));
  if (!key_open_) lead();
  key_open_ = false;
}

void JsonWriter::key(std::string_view name) {
  assert(!key_open_ && !levels_.empty() && levels_.back().open == '{');
  lead();
  append_string(out_, name);
  out_ += form() == JsonForm::packed ? ":" : ": ";
  key_open_ = true;
}

void JsonWriter::begin(char bracket, JsonForm form) {
  before_value();
  out_ += bracket;
  levels_.push_back({bracket, std::max(form, this->form())});
}

void JsonWriter::end(char open, char close) {
  assert(!key_open_ && !levels_.empty() && levels_.back().open == open);
  (void)open;
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.form == JsonForm::lines && !level.empty) new_line();
  out_ += close;
}

void JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
}

void JsonWriter::fixed(double value, int digits) {
  if (!std::isfinite(value)) return null();
  before_value();
  fmt::format_to(std::back_inserter(out_), "{:.{}f}", value, digits);
}

void JsonWriter::write_unsigned(std::uint64_t value) {
  before_value();
  const fmt::format_int digits(value);
  out_.append(digits.data(), digits.size());
}

void JsonWriter::write_signed(std::int64_t value) {
  before_value();
  const fmt::format_int digits(value);
  out_.append(digits.data(), digits.size());
}

void JsonWriter::write_double(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::write_text(std::string_view text) {
  before_value();
  append_string(out_, text);
}

void JsonWriter::finish() {
  assert(levels_.empty() && !key_open_);
  out_ += '\n';
}

}  // namespace culprit
