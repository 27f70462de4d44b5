#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace culprit {

namespace {

std::vector<std::string_view> split(std::string_view text, bool (*separates)(char)) {
  std::vector<std::string_view> parts;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();;) {
    at = std::find_if_not(at, end, separates);
    if (at == end) return parts;
    const char* const stop = std::find_if(at, end, separates);
    parts.emplace_back(at, stop);
    at = stop;
  }
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return to_lower(c); });
  return out;
}

bool contains_ignoring_case(std::string_view text, std::string_view lower) {
  const auto same = [](char c, char wanted) { return to_lower(c) == wanted; };
  return lower.empty() || std::search(text.begin(), text.end(), lower.begin(), lower.end(), same) != text.end();
}

bool equals_ignoring_case(std::string_view text, std::string_view other) {
  return std::ranges::equal(text, other, [](char a, char b) { return to_lower(a) == to_lower(b); });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_word(std::string_view& text) {
  const auto begin = std::ranges::find_if_not(text, is_space);
  const auto end = std::find_if(begin, text.end(), is_space);
  const std::string_view word(begin, end);
  text = std::string_view(end, text.end());
  return word;
}

std::vector<std::string_view> split_words(std::string_view text) { return split(text, is_space); }

std::vector<std::string_view> split_lines(std::string_view text) {
  return split(text, [](char c) { return c == '\n'; });
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

template std::optional<int> parse_number(std::string_view);
template std::optional<unsigned> parse_number(std::string_view);
template std::optional<std::int64_t> parse_number(std::string_view);
template std::optional<std::uint64_t> parse_number(std::string_view);
template std::optional<double> parse_number(std::string_view);

}  // namespace culprit
