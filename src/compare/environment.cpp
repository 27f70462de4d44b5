#include "compare/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

namespace culprit::compare {

namespace {

/// What a program calls one start of itself is another one each time (SGLANG_RUN_ID).
bool names_a_start(std::string_view key) {
  return key.find(".variable.") != std::string_view::npos && key.ends_with("_RUN_ID");
}

constexpr std::string_view kTarget = "env.target";

/// Of a target after the first one only what is not as of the first is recorded: where a process may run, and with
/// which right to the CPUs.
bool is_as_of_the_first(std::string_view key) {
  if (!key.starts_with(kTarget)) return false;
  const std::size_t dot = key.find('.', kTarget.size());
  const bool is_later = dot != std::string_view::npos && dot > kTarget.size();
  return is_later && (key.ends_with(".cpus_allowed") || key.find(".sched.") != std::string_view::npos ||
                      key.find(".cgroup.cpu.") != std::string_view::npos);
}

}  // namespace

std::vector<model::EnvironmentChange> environment_changes(const model::Environment& base,
                                                          const model::Environment& candidate) {
  std::vector<model::EnvironmentChange> changes;
  if (base.empty() || candidate.empty()) return changes;
  std::set<std::string> keys;
  for (const model::Environment* side : {&base, &candidate})
    for (const auto& [key, values] : *side)
      if (!names_a_start(key)) keys.insert(key);
  const auto text = [](const model::Environment& side, const std::string& key) {
    auto it = side.find(key);
    if (it == side.end() && is_as_of_the_first(key))
      it = side.find(std::string(kTarget) + key.substr(key.find('.', kTarget.size())));
    return it == side.end() ? std::string() : fmt::format("{}", fmt::join(it->second, " / "));
  };
  for (const std::string& key : keys)
    if (model::EnvironmentChange change{key, {text(base, key), text(candidate, key)}};
        change.value[0] != change.value[1])
      changes.push_back(std::move(change));
  return changes;
}

}  // namespace culprit::compare
