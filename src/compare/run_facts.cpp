#include "compare/run_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compare/comparable.h"

namespace culprit::compare {

std::vector<Difference> differences_of(const RunFacts& base, const RunFacts& candidate) {
  std::vector<Difference> differences;
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
  return differences;
}

std::string to_string(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& d : differences)
    text += fmt::format("{}{} {} against {}", text.empty() ? "" : "; ", d.what, d.base, d.candidate);
  return text;
}

bool forget_guessed_phases(model::Cycles& base, model::Cycles& candidate, model::Profile& base_profile,
                           model::Profile& candidate_profile) {
  if (!common_phases(base, candidate).empty()) return false;
  const auto forget = [](auto& cycles) {
    for (auto& cycle : cycles)
      if (cycle.phase_guessed) cycle.phase = model::Phase::other;
  };
  model::Cycles a = base;
  model::Cycles b = candidate;
  forget(a.cycles);
  forget(b.cycles);
  if (common_phases(a, b).empty()) return false;
  base = std::move(a);
  candidate = std::move(b);
  forget(base_profile.cycles);
  forget(candidate_profile.cycles);
  return true;
}

}  // namespace culprit::compare
