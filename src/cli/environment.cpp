#include "cli/environment.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace culprit::cli {

namespace {

constexpr std::size_t kMostNotes = 40;

bool is_environment(std::string_view key) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"env.", "library.", "missing.", "record.preset",
                                                         "sched.source"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); });
}

std::string values_of(const Environment& environment, const std::string& key) {
  const auto it = environment.find(key);
  return it == environment.end() ? "nothing" : fmt::format("{}", fmt::join(it->second, " / "));
}

}  // namespace

void add_environment(const Trace& trace, Environment& environment) {
  for (const Rank& rank : trace.ranks)
    for (const auto& [key, value] : rank.metadata)
      if (is_environment(key)) environment[key].insert(value);
}

std::vector<std::string> environment_notes(const Environment& base, const Environment& candidate) {
  std::vector<std::string> notes;
  if (base.empty() || candidate.empty()) return notes;
  std::set<std::string> keys;
  for (const Environment* side : {&base, &candidate})
    for (const auto& [key, values] : *side) keys.insert(key);
  std::size_t left_out = 0;
  for (const std::string& key : keys) {
    const std::string a = values_of(base, key);
    const std::string b = values_of(candidate, key);
    if (a == b) continue;
    if (notes.size() == kMostNotes)
      ++left_out;
    else
      notes.push_back(fmt::format("Environment differs: {}: {} against {}", key, a, b));
  }
  if (left_out != 0)
    notes.push_back(fmt::format("Environment differs in {} more facts: culprit info shows each side's", left_out));
  return notes;
}

}  // namespace culprit::cli
