#include "compare/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

namespace culprit::compare {

std::vector<model::EnvironmentChange> environment_changes(const model::Environment& base,
                                                          const model::Environment& candidate) {
  std::vector<model::EnvironmentChange> changes;
  if (base.empty() || candidate.empty()) return changes;
  std::set<std::string> keys;
  for (const model::Environment* side : {&base, &candidate})
    for (const auto& [key, values] : *side) keys.insert(key);
  const auto text = [](const model::Environment& side, const std::string& key) {
    const auto it = side.find(key);
    return it == side.end() ? std::string() : fmt::format("{}", fmt::join(it->second, " / "));
  };
  for (const std::string& key : keys)
    if (model::EnvironmentChange change{key, {text(base, key), text(candidate, key)}};
        change.value[0] != change.value[1])
      changes.push_back(std::move(change));
  return changes;
}

}  // namespace culprit::compare
