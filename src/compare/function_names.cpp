#include "compare/function_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/text.h"

namespace culprit::compare {

namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// "64", "64x64x3".
bool is_size(std::string_view word) {
  return !word.empty() && is_digit(word.front()) && is_digit(word.back()) &&
         std::ranges::all_of(word, [](char c) { return is_digit(c) || c == 'x'; });
}

/// "stages5", "align8", "warpsize2x2x1": a number with what it counts.
bool is_counted(std::string_view word) {
  constexpr std::array<std::string_view, 12> kCounted = {"stages", "stage", "align",   "warpsize", "warps",  "tilesize",
                                                         "tile",   "block", "cluster", "splitk",   "splitK", "slicedk"};
  return std::ranges::any_of(
      kCounted, [&](std::string_view what) { return word.starts_with(what) && is_size(word.substr(what.size())); });
}

/// "0x7f1a90", or a hash of eight digits or more with letters among them.
bool is_address_or_hash(std::string_view word) {
  if (word.starts_with("0x") && word.size() > 2) return std::ranges::all_of(word.substr(2), is_hex);
  constexpr std::size_t kShortestHash = 8;
  return word.size() >= kShortestHash && std::ranges::all_of(word, is_hex) && std::ranges::any_of(word, is_digit);
}

/// "0d1d2de3": what Triton says of the arguments that a kernel was compiled for.
bool is_triton_suffix(std::string_view word) {
  std::size_t arguments = 0;
  bool number = false;
  for (const char c : word) {
    if (is_digit(c)) {
      number = true;
      continue;
    }
    if (c != 'd' && c != 'c' && c != 'e') return false;
    if (arguments == 0 && !number) return false;
    if (number) ++arguments;
    number = false;
  }
  return arguments > 1;
}

bool says_nothing(std::string_view word) {
  return is_size(word) || is_counted(word) || is_address_or_hash(word) || is_triton_suffix(word);
}

/// "Li64E" in a mangled name is the template argument 64.
std::string without_mangled_numbers(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i + 2;
    if (name[i] == 'L' && end < name.size() && is_letter(name[i + 1]))
      while (end < name.size() && is_digit(name[end])) ++end;
    if (end > i + 2 && end < name.size() && name[end] == 'E') {
      result.append(name.substr(i, 2)).append("#E");
      i = end + 1;
    } else {
      result.push_back(name[i++]);
    }
  }
  return result;
}

using NamePlace = std::tuple<model::Phase, std::uint32_t, StringId, StringId, std::string>;
using RowsOfSides = std::array<std::vector<std::size_t>, 2>;  // of both sides

bool as_many_calls(double a, double b) { return std::abs(a - b) <= kAsManyCalls * std::max(a, b); }

}  // namespace

std::string match_key(std::string_view name) {
  const std::string plain = name.starts_with("_Z") ? without_mangled_numbers(name) : std::string(name);
  std::string key;
  for (std::size_t i = 0; i < plain.size();) {
    std::size_t end = i;
    while (end < plain.size() && (is_digit(plain[end]) || is_letter(plain[end]))) ++end;
    if (end == i) {
      key.push_back(plain[i++]);
      continue;
    }
    const std::string_view word = std::string_view(plain).substr(i, end - i);
    key.append(says_nothing(word) ? "#" : word);
    i = end;
  }
  return key;
}

std::vector<std::pair<std::size_t, std::size_t>> pair_renamed(const std::vector<OneSided>& rows) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::set<std::size_t> taken;
  enum class By : std::uint8_t { name, short_name, place };
  for (const By by : {By::name, By::short_name, By::place}) {
    std::map<NamePlace, RowsOfSides> places;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const OneSided& row = rows[i];
      if (taken.contains(i) || (by == By::place && (!row.on_device || row.parent == 0))) continue;
      places[{row.phase, row.process, row.kind, row.device,
              by == By::name         ? match_key(row.name)
              : by == By::short_name ? match_key(row.short_name)
                                     : std::to_string(row.parent)}][row.side]
          .push_back(i);
    }
    for (auto& [place, sides] : places) {
      const bool only = sides[0].size() == 1 && sides[1].size() == 1;
      if ((by != By::name && !only) || std::max(sides[0].size(), sides[1].size()) > kMostAlike) continue;
      for (auto& side : sides)
        std::ranges::sort(side, {}, [&](std::size_t i) { return std::pair(rows[i].time, rows[i].name); });
      for (const std::size_t before : sides[0]) {
        const auto is_it = [&](std::size_t after) {
          return !taken.contains(after) && rows[before].parent == rows[after].parent &&
                 as_many_calls(rows[before].calls, rows[after].calls);
        };
        const auto after = only && by == By::name ? sides[1].begin() : std::ranges::find_if(sides[1], is_it);
        if (after == sides[1].end()) continue;
        pairs.emplace_back(before, *after);
        taken.insert({before, *after});
      }
    }
  }
  return pairs;
}

}  // namespace culprit::compare
