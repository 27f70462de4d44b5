// What the two sides were told or given that differs, and may be why one is slower: options, variables, versions. Only
// that it differs is seen, never what it does: it is a cause where nothing that was felt explains the slowdown, and
// else stands beside what was.
#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "model/settings.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;
using model::VerdictState;

constexpr double kExplained = 0.5;      // of what a step takes longer
constexpr double kLeastOpen = 0.1;      // of a step
constexpr std::size_t kMostFacts = 4;   // in one verdict
constexpr std::size_t kMostBeside = 2;  // beside other evidence
constexpr double kUnsureOfHosts = 0.3;  // and where nothing is decided

std::string sentence(const Evidence& evidence, const model::SettingChange& setting) {
  return fmt::format("{} is {} instead of {}", setting.what, setting.value[evidence.side()],
                     setting.value[1 - evidence.side()]);
}

bool is_the_programs(const Verdict& v) {
  return v.cause == "host_bound" || v.cause.starts_with("kernel_") || v.cause == "workload_changed";
}

bool is_of_the_program(const model::SettingChange& setting) {
  constexpr std::array<std::string_view, 4> kDetails = {"option", "variable", "version", "limit"};
  return std::ranges::find(kDetails, setting.detail) != kDetails.end();
}

/// Two hosts differ in much that does no harm.
bool are_of_two_hosts(const Evidence& evidence, const std::vector<model::SettingChange>& all) {
  const auto both_tell = [&](std::string_view key) {
    const auto fact = evidence.fact(key);
    return fact && std::ranges::none_of(*fact, &std::string::empty);
  };
  return both_tell("env.cpu.model") || both_tell("env.kernel.release") ||
         std::ranges::all_of(all, [](const model::SettingChange& setting) { return setting.detail == "machine"; });
}

void differ(const Evidence& evidence, Verdicts& verdicts) {
  // Where nothing is decided they are what to look at first, of a side that seems to be a tenth slower.
  const auto parts = evidence.step();
  const double step = evidence.mean_step() > 0 ? evidence.mean_step() : parts ? parts->all().without : 0;
  const bool open = evidence.comparison().outcome == model::Outcome::inconclusive && step > 0 &&
                    evidence.growth() >= kLeastOpen * step;
  if (!evidence.is_slower() && !open) return;
  std::vector<model::SettingChange> all = model::settings_that_differ(evidence.comparison().environment);
  // What was felt of a limit is told there.
  if (std::ranges::any_of(verdicts, is_of_memory_limit))
    std::erase_if(all, [](const model::SettingChange& setting) {
      return setting.what.starts_with("The control group's memory.");
    });
  if (all.empty()) return;
  double explained = 0;
  for (Verdict& v : verdicts) {
    if (v.state != VerdictState::active && !open) continue;
    if (std::isfinite(v.impact_ns)) explained += v.impact_ns;
    if (is_the_programs(v))
      for (const model::SettingChange& setting :
           all | std::views::filter(is_of_the_program) | std::views::take(kMostBeside))
        v.evidence.push_back(sentence(evidence, setting));
  }
  const double growth = evidence.growth();
  if (!(growth > 0) || explained >= kExplained * growth) return;
  Verdict verdict;
  verdict.cause = "environment_changed";
  verdict.detail = all.front().detail;
  verdict.scope = model::VerdictScope::process;
  verdict.side = evidence.side();
  verdict.state = open ? VerdictState::latent : VerdictState::active;
  const bool two_hosts = are_of_two_hosts(evidence, all);
  verdict.confidence = open || two_hosts ? kUnsureOfHosts : 0.5;
  verdict.impact_ns = growth - explained;
  for (std::size_t i = 0; i < std::min(all.size(), kMostFacts); ++i)
    verdict.evidence.push_back(sentence(evidence, all[i]));
  if (all.size() > kMostFacts)
    verdict.evidence.push_back(fmt::format("{} more of its settings and versions differ", all.size() - kMostFacts));
  verdict.against.emplace_back("Only that they differ was seen, and that nothing else explains it");
  if (two_hosts) verdict.against.emplace_back("Two machines differ in much that does no harm");
  verdict.next_step = "set it back on one side and compare again (culprit ab)";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kSettingsRules = {Rule{"settings.differ", differ}};

}  // namespace

std::span<const Rule> settings_rules() { return kSettingsRules; }

}  // namespace culprit::diagnose
