#include "formats/ncu_csv/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/text.h"

namespace culprit::formats::ncu_csv {

namespace {

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The number itself, without mark and instances.
std::string_view bare(std::string_view text) {
  text = trim_blanks(text);
  if (text.starts_with("(!)")) text = trim_blanks(text.substr(3));
  if (const std::size_t open = text.find(" ("); open != std::string_view::npos)
    text = trim_blanks(text.substr(0, open));
  return text;
}

/// Groups of three digits between `separator`s, the first of one to three.
bool grouped(std::string_view whole, char separator) {
  std::size_t run = 0;
  bool first = true;
  for (const char c : whole) {
    if (c != separator) {
      ++run;
      continue;
    }
    if (first ? run == 0 || run > 3 : run != 3) return false;
    first = false;
    run = 0;
  }
  return first || run == 3;
}

}  // namespace

LocaleVote vote(std::string_view text) {
  text = bare(text);
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return LocaleVote::none;
  std::size_t points = 0, commas = 0;
  for (const char c : text) {
    if (c == '.') ++points;
    if (c == ',') ++commas;
    if (!is_digit(c) && c != '.' && c != ',') return LocaleVote::none;
  }
  if (points + commas == 0) return LocaleVote::none;
  const std::size_t last = text.find_last_of(".,");
  const bool point_last = text[last] == '.';
  if (points != 0 && commas != 0) return point_last ? LocaleVote::point : LocaleVote::comma;
  if (points + commas > 1) return points != 0 ? LocaleVote::comma : LocaleVote::point;
  // One separator: with three digits behind and one to three before it may group or be the fraction.
  const bool ambiguous = text.size() - last - 1 == 3 && last <= 3 && !(last == 1 && text[0] == '0');
  if (ambiguous) return LocaleVote::either;
  return point_last ? LocaleVote::point : LocaleVote::comma;
}

LocaleVote vote_by_unit(std::string_view text, std::string_view unit) {
  if (vote(text) != LocaleVote::either) return LocaleVote::none;
  const bool has_point = bare(text).find('.') != std::string_view::npos;
  constexpr std::array<std::string_view, 9> kWhole = {"ns",    "nsecond", "nanosecond", "byte", "inst",
                                                      "cycle", "thread",  "block",      "warp"};
  if (std::ranges::find(kWhole, unit) != kWhole.end()) return has_point ? LocaleVote::comma : LocaleVote::point;
  if (unit == "%") return has_point ? LocaleVote::point : LocaleVote::comma;
  return LocaleVote::none;
}

std::optional<double> parse_number(std::string_view text, Locale locale) {
  text = bare(text);
  const char fraction = locale == Locale::point ? '.' : ',';
  const char group = locale == Locale::point ? ',' : '.';
  const std::size_t point = text.find(fraction);
  std::string_view whole = text.substr(0, point);
  if (!whole.empty() && (whole.front() == '-' || whole.front() == '+')) whole.remove_prefix(1);
  if (const std::size_t e = whole.find_first_of("eE"); e != std::string_view::npos) whole = whole.substr(0, e);
  if (whole.find(group) != std::string_view::npos && !grouped(whole, group)) return std::nullopt;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == fraction)
      plain += '.';
    else if (c == group && i < point)
      continue;
    else if (c == '\'' || c == ' ')
      continue;
    else if (text.substr(i).starts_with("\xC2\xA0"))
      ++i;
    else if (text.substr(i).starts_with("\xE2\x80\xAF"))
      i += 2;
    else
      plain += c;
  }
  const char* begin = plain.data();
  const char* end = begin + plain.size();
  if (begin != end && *begin == '+') ++begin;
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || begin == end || !std::isfinite(value)) return std::nullopt;
  return value;
}

UnitScale unit_scale(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, UnitScale>, 19> kExact = {{{"%", {"fraction", 0.01}},
                                                                              {"ns", {"ns", 1}},
                                                                              {"nsecond", {"ns", 1}},
                                                                              {"nanosecond", {"ns", 1}},
                                                                              {"us", {"ns", 1e3}},
                                                                              {"\xC2\xB5s", {"ns", 1e3}},
                                                                              {"\xCE\xBCs", {"ns", 1e3}},
                                                                              {"usecond", {"ns", 1e3}},
                                                                              {"microsecond", {"ns", 1e3}},
                                                                              {"ms", {"ns", 1e6}},
                                                                              {"msecond", {"ns", 1e6}},
                                                                              {"millisecond", {"ns", 1e6}},
                                                                              {"s", {"ns", 1e9}},
                                                                              {"sec", {"ns", 1e9}},
                                                                              {"second", {"ns", 1e9}},
                                                                              {"byte", {"byte", 1}},
                                                                              {"hz", {"hz", 1}},
                                                                              {"byte/s", {"byte/s", 1}},
                                                                              {"byte/second", {"byte/s", 1}}}};
  for (const auto& [text, scale] : kExact)
    if (unit == text) return scale;
  constexpr std::string_view kPrefixes = "KMGTP";
  if (unit.size() > 2) {
    const char prefix = unit.front() == 'k' ? 'K' : unit.front();
    if (const std::size_t power = kPrefixes.find(prefix); power != std::string_view::npos) {
      std::string_view rest = unit.substr(1);
      if (rest == "hz" || rest == "Hz") return {"hz", std::pow(1e3, static_cast<double>(power + 1))};
      for (const auto& [text, scale] : kExact)
        if (rest == text && scale.si.starts_with("byte"))
          return {scale.si, std::pow(1e3, static_cast<double>(power + 1))};
    }
  }
  return {unit, 1};
}

}  // namespace culprit::formats::ncu_csv
