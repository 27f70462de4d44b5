#include "compare/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"

namespace culprit::compare {

namespace {

constexpr std::string_view kTarget = "env.target";
constexpr std::string_view kTargets = "env.targets";  // how many were looked at
constexpr std::size_t kMostTargets = 65'536;          // no recorder looks at more

/// What a program calls one start of itself is another one each time (SGLANG_RUN_ID).
bool names_a_start(std::string_view key) {
  return key.find(".variable.") != std::string_view::npos && key.ends_with("_RUN_ID");
}

/// "env.target12.sched.nice" is the fact "sched.nice" of the target 12. nullopt: it is of the first, or of none.
struct OfLater {
  unsigned number = 0;
  std::string_view fact;
};
std::optional<OfLater> of_later(std::string_view key) {
  if (!key.starts_with(kTarget)) return std::nullopt;
  key.remove_prefix(kTarget.size());
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = parse_number<unsigned>(key.substr(0, dot));
  return number ? std::optional(OfLater{*number, key.substr(dot + 1)}) : std::nullopt;
}

/// Of a target after the first one only what is not as of the first is recorded: where a process may run, and with
/// which right to the CPUs.
bool is_as_of_the_first(std::string_view fact) {
  constexpr std::array<std::string_view, 7> kFacts = {
      "cpus_allowed",     "sched.nice",        "sched.policy",     "sched.realtime_priority",
      "cgroup.cpu.quota", "cgroup.cpu.weight", "cgroup.cpu.shares"};
  return std::ranges::find(kFacts, fact) != kFacts.end();
}

std::string text_of(const model::Environment& side, const std::string& key) {
  const auto it = side.find(key);
  return it == side.end() ? std::string() : fmt::format("{}", fmt::join(it->second, " / "));
}

std::string key_of(unsigned number, std::string_view fact) { return fmt::format("{}{}.{}", kTarget, number, fact); }

/// A value of a target after the first one; without a number: it is as of the first.
struct Value {
  std::optional<unsigned> number;
  std::string text;
};

/// Targets after the first one of a side. Those of programs that only this side has are no others' counterparts.
class Later {
 public:
  Later(const model::Environment& side, const model::Environment& other) : side_(side) {
    std::set<std::string> programs;
    for (const auto& [key, values] : other)
      if (key.starts_with(kTarget) && key.ends_with(".program")) programs.insert(values.begin(), values.end());
    std::set<unsigned> all;
    for (const auto& [key, values] : side)
      if (const auto later = of_later(key)) all.insert(later->number);
    for (const unsigned number : all) {
      const auto program = side.find(key_of(number, "program"));
      if (program == side.end() || programs.empty() ||
          std::ranges::any_of(program->second, [&](const std::string& name) { return programs.contains(name); }))
        numbers_.insert(number);
      else
        foreign_.insert(number);
    }
    count_ = numbers_.size();
    const auto targets = side.find(std::string(kTargets));
    if (targets == side.end()) return;
    // Several recordings of a side may have had several.
    is_sure_ = targets->second.size() == 1;
    for (const std::string& text : targets->second) {
      const auto count = std::min(parse_number<std::size_t>(text).value_or(0), kMostTargets);
      if (count > foreign_.size() + 1) count_ = std::max(count_, count - 1 - foreign_.size());
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is_sure() const { return is_sure_; }

  /// Those that tell it in the order of their numbers, and then those that are as the first one.
  [[nodiscard]] std::vector<Value> values_of(std::string_view fact) const {
    std::vector<Value> values = told_of(numbers_, fact);
    const std::string first = text_of(side_, fmt::format("{}.{}", kTarget, fact));
    if (!first.empty() && values.size() < count_) values.resize(count_, {std::nullopt, first});
    return values;
  }

  [[nodiscard]] std::vector<Value> foreign_values_of(std::string_view fact) const { return told_of(foreign_, fact); }

 private:
  [[nodiscard]] std::vector<Value> told_of(const std::set<unsigned>& numbers, std::string_view fact) const {
    std::vector<Value> values;
    for (const unsigned number : numbers)
      if (std::string text = text_of(side_, key_of(number, fact)); !text.empty())
        values.push_back({number, std::move(text)});
    return values;
  }

  const model::Environment& side_;
  std::set<unsigned> numbers_;
  std::set<unsigned> foreign_;
  std::size_t count_ = 0;
  bool is_sure_ = true;
};

/// What is of both leaves both.
void cancel(std::vector<Value>& a, std::vector<Value>& b) {
  std::map<std::string, std::size_t> in_both;
  for (const Value& value : b) ++in_both[value.text];
  std::map<std::string, std::size_t> left = in_both;
  std::erase_if(a, [&](const Value& value) {
    const auto same = left.find(value.text);
    if (same == left.end() || same->second == 0) return false;
    --same->second;
    return true;
  });
  for (const auto& [text, count] : left) in_both[text] -= count;
  std::erase_if(b, [&](const Value& value) {
    std::size_t& count = in_both[value.text];
    if (count == 0) return false;
    --count;
    return true;
  });
}

/// Which process has which number may differ, and so may how many there are: a process that only one side has stands
/// beside none.
void add_later(const std::array<Later, 2>& later, std::string_view fact,
               std::vector<model::EnvironmentChange>& changes) {
  std::array<std::vector<Value>, 2> values = {later[0].values_of(fact), later[1].values_of(fact)};
  cancel(values[0], values[1]);
  const bool as_many = later[0].count() == later[1].count() && later[0].is_sure() && later[1].is_sure();
  const std::vector<Value>& longer = values[values[1].size() > values[0].size() ? 1 : 0];
  // Of several kinds nobody knows which of them came.
  const auto is_alike = [&](const Value& value) { return value.text == longer.front().text; };
  const std::size_t pairs =
      as_many || std::ranges::all_of(longer, is_alike) ? std::min(values[0].size(), values[1].size()) : 0;
  for (std::size_t i = 0; i < pairs; ++i)
    if (const auto number = values[0][i].number ? values[0][i].number : values[1][i].number)
      changes.push_back({key_of(*number, fact), {values[0][i].text, values[1][i].text}});
  for (std::size_t side = 0; side < 2; ++side) {
    std::vector<Value> alone = later.at(side).foreign_values_of(fact);
    alone.insert(alone.end(), values.at(side).begin() + static_cast<std::ptrdiff_t>(pairs), values.at(side).end());
    for (const Value& value : alone) {
      if (!value.number) continue;
      model::EnvironmentChange change{key_of(*value.number, fact), {}};
      change.value.at(side) = value.text;
      changes.push_back(std::move(change));
    }
  }
}

}  // namespace

std::vector<model::EnvironmentChange> environment_changes(const model::Environment& base,
                                                          const model::Environment& candidate) {
  std::vector<model::EnvironmentChange> changes;
  if (base.empty() || candidate.empty()) return changes;
  std::set<std::string> keys;
  std::set<std::string> facts_of_later;
  for (const model::Environment* side : {&base, &candidate})
    for (const auto& [key, values] : *side) {
      const auto later = of_later(key);
      if (later && is_as_of_the_first(later->fact))
        facts_of_later.emplace(later->fact);
      else if (!names_a_start(key) && key != kTargets)
        keys.insert(key);
    }
  for (const std::string& key : keys)
    if (model::EnvironmentChange change{key, {text_of(base, key), text_of(candidate, key)}};
        change.value[0] != change.value[1])
      changes.push_back(std::move(change));
  const std::array later = {Later(base, candidate), Later(candidate, base)};
  for (const std::string& fact : facts_of_later) add_later(later, fact, changes);
  std::ranges::stable_sort(changes, {}, &model::EnvironmentChange::key);
  return changes;
}

}  // namespace culprit::compare
