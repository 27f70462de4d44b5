#include "compare/run_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

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
  return differences;
}

}  // namespace culprit::compare
