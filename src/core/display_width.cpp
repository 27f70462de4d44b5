#include "core/display_width.h"

#include <utf8proc.h>

#include "core/text.h"
#include "core/utf8.h"

namespace culprit {

namespace {

std::size_t width_of(const CodePoint& c) {
  if (!c.valid) return c.length;
  if (c.value < 0x80) return 1;  // control characters are escaped before they are shown
  const auto value = static_cast<utf8proc_int32_t>(c.value);
  if (utf8proc_category(value) == UTF8PROC_CATEGORY_CN) return 1;  // newer than the tables; terminals draw a box
  return static_cast<std::size_t>(utf8proc_charwidth(value));
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    width += width_of(c);
    at += c.length;
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (text.size() <= width || display_width(text) <= width) return std::string(text);
  constexpr std::string_view kCut = "...";
  if (width <= kCut.size()) return std::string(kCut.substr(0, width));
  std::size_t columns = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text, at);
    columns += width_of(c);
    if (columns > width - kCut.size()) break;
    at += c.length;
  }
  return std::string(text.substr(0, at)) + std::string(kCut);
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    const std::size_t columns = display_width(word);
    if (used != 0 && used + 1 + columns > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used != 0) lines.back() += ' ';
    lines.back() += word;
    used += columns + (used != 0 ? 1 : 0);
  }
  return lines;
}

std::string shorten_middle(std::string_view text, std::size_t width) {
  if (text.size() <= width || display_width(text) <= width) return std::string(text);
  constexpr std::string_view kCut = "...";
  const std::size_t head_width = (width - kCut.size() + 1) / 2;
  const std::size_t tail_width = width - kCut.size() - head_width;
  std::string head = shorten(text, head_width + kCut.size());
  head.resize(head.size() - kCut.size());
  // Grows by whole code points while it fits.
  std::size_t tail = text.size();
  for (std::size_t at = text.size(); at-- > 0;) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) continue;
    if (display_width(text.substr(at)) > tail_width) break;
    tail = at;
  }
  return head.append(kCut).append(text.substr(tail));
}

}  // namespace culprit
