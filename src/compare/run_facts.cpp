#include "compare/run_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::compare {

std::vector<model::Difference> differences_of(const model::RunFacts& base, const model::RunFacts& candidate) {
  std::vector<model::Difference> differences;
  if (base.gpu_work != candidate.gpu_work) {
    const auto text = [](bool work) { return work ? "recorded" : "none"; };
    differences.push_back({"work on GPUs:", text(base.gpu_work), text(candidate.gpu_work), true});
  }
  if (!base.device_models.empty() && !candidate.device_models.empty() && base.device_models != candidate.device_models)
    differences.push_back({"device model", fmt::format("{}", fmt::join(base.device_models, ", ")),
                           fmt::format("{}", fmt::join(candidate.device_models, ", ")), true});
  if (base.world_size > 0 && candidate.world_size > 0 && base.world_size != candidate.world_size)
    differences.push_back({"world size", std::to_string(base.world_size), std::to_string(candidate.world_size), true});
  if (!base.ranks.empty() && !candidate.ranks.empty() && base.ranks != candidate.ranks)
    differences.push_back({"recorded ranks", fmt::format("{}", fmt::join(base.ranks, ", ")),
                           fmt::format("{}", fmt::join(candidate.ranks, ", ")), false});
  const auto recorded = [&](std::string_view what, const std::set<std::string>& a, const std::set<std::string>& b) {
    if (a.empty() || b.empty() || a == b) return;
    model::Difference& difference = differences.emplace_back();
    difference.what = what;
    difference.base = fmt::format("{}", fmt::join(a, ", "));
    difference.candidate = fmt::format("{}", fmt::join(b, ", "));
    difference.first = true;
  };
  recorded("program", base.programs, candidate.programs);
  recorded("preset", base.presets, candidate.presets);
  recorded("collectors", base.collectors, candidate.collectors);
  const auto differ = [&](std::string_view what, const std::set<std::string>& a, const std::set<std::string>& b) {
    if (a == b) return;
    const auto text = [](const std::set<std::string>& kinds) {
      return kinds.empty() ? std::string("none") : fmt::format("{}", fmt::join(kinds, ", "));
    };
    model::Difference& difference = differences.emplace_back();
    difference.what = what;
    difference.base = text(a);
    difference.candidate = text(b);
    difference.first = true;
  };
  differ("functions of the host", base.functions, candidate.functions);
  differ("options of the profiler", base.options, candidate.options);
  return differences;
}

std::set<std::string, std::less<>> captured_on_one_side(const model::RunFacts& base, const model::RunFacts& candidate) {
  std::set<std::string, std::less<>> kinds;
  std::ranges::set_symmetric_difference(base.functions, candidate.functions, std::inserter(kinds, kinds.end()));
  if (!kinds.empty()) kinds.emplace("between");
  return kinds;
}

std::array<std::vector<std::string>, 2> profiled_alone(const model::RunFacts& base, const model::RunFacts& candidate) {
  if (!base.presets.empty() || !candidate.presets.empty()) return {};
  std::array<std::vector<std::string>, 2> alone;
  const auto add = [&](const std::set<std::string>& a, const std::set<std::string>& b) {
    std::ranges::set_difference(a, b, std::back_inserter(alone[0]));
    std::ranges::set_difference(b, a, std::back_inserter(alone[1]));
  };
  add(base.options, candidate.options);
  add(base.functions, candidate.functions);
  return alone;
}

}  // namespace culprit::compare
