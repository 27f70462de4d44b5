// The small handling of text that every reader of lines, /proc and names needs: one of each, all about ASCII; other
// bytes pass through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// Space, tab, line feed, carriage return, form feed, vertical tab.
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string to_lower(std::string_view text);
constexpr bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
/// The same without regard to case; `lower` is lower case.
bool contains_ignoring_case(std::string_view text, std::string_view lower);
bool equals_ignoring_case(std::string_view text, std::string_view other);

/// `text` without white space around it.
std::string_view trim(std::string_view text);
/// Takes the first line off `text`, without its end.
std::string_view take_line(std::string_view& text);
/// Takes the next word off `text`; words stand between white space. Empty at the end.
std::string_view take_word(std::string_view& text);
/// The words of `text`.
std::vector<std::string_view> split_words(std::string_view text);
/// The lines of `text` without their ends; no empty ones.
std::vector<std::string_view> split_lines(std::string_view text);

/// The number that `text` is from its first to its last character; nothing when it is none, or does not fit. As
/// std::from_chars reads it: decimal, no white space, no leading plus. For int, std::int64_t, their unsigned kin, and
/// double.
template <class Number>
std::optional<Number> parse_number(std::string_view text);

/// Calls `use(line, number)` for every line, number 1-based, without its end ("\n" or "\r\n"); a byte order mark is
/// skipped.
template <class Use>
void each_line(std::string_view text, Use&& use) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_line(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, number);
  }
}

}  // namespace culprit
