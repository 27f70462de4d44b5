// What the two sides were told or given that differs, and may be why one is slower: options, variables, versions. Only
// that it differs is seen, never what it does: it is a cause where nothing that was felt explains the slowdown, and
// else stands beside what was.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;
using model::VerdictState;

constexpr double kExplained = 0.5;      // of what a step takes longer
constexpr std::size_t kMostFacts = 4;   // in one verdict
constexpr std::size_t kMostBeside = 2;  // beside other evidence

struct Known {
  std::string_view prefix;
  std::string_view noun;
  std::string_view detail;
};
constexpr std::array kKnown = {Known{"env.target.option.", "The option --", "option"},
                               Known{"env.target.variable.", "The variable ", "variable"},
                               Known{"env.target.package.", "The package ", "version"},
                               Known{"env.target.library.", "The library ", "version"},
                               Known{"env.target.python.version", "Python", "version"},
                               Known{"env.gpu.driver", "The driver of the devices", "version"},
                               Known{"env.kernel.release", "The kernel", "version"}};

/// Where it listens and what it draws its lots with make nothing slower.
constexpr std::array<std::string_view, 4> kHarmless = {"env.target.option.port", "env.target.option.seed",
                                                       "env.target.option.random-seed",
                                                       "env.target.variable.VLLM_PORT"};

struct Setting {
  std::string sentence;
  std::string_view detail;
};

std::vector<Setting> settings(const Evidence& evidence) {
  std::vector<Setting> all;
  const auto shown = [](const std::string& value) { return value.empty() ? std::string("none") : value; };
  for (const Known& known : kKnown)
    for (const model::EnvironmentChange& fact : evidence.comparison().environment) {
      if (!fact.key.starts_with(known.prefix) || std::ranges::find(kHarmless, fact.key) != kHarmless.end()) continue;
      all.push_back({fmt::format("{}{} is {} instead of {}", known.noun, fact.key.substr(known.prefix.size()),
                                 shown(fact.value[evidence.side()]), shown(fact.value[1 - evidence.side()])),
                     known.detail});
    }
  return all;
}

bool is_the_programs(const Verdict& v) {
  return v.cause == "host_bound" || v.cause.starts_with("kernel_") || v.cause == "workload_changed";
}

void differ(const Evidence& evidence, Verdicts& verdicts) {
  if (!evidence.is_slower()) return;
  const std::vector<Setting> all = settings(evidence);
  if (all.empty()) return;
  double explained = 0;
  for (Verdict& v : verdicts) {
    if (v.state != VerdictState::active) continue;
    if (std::isfinite(v.impact_ns)) explained += v.impact_ns;
    if (is_the_programs(v))
      for (std::size_t i = 0; i < std::min(all.size(), kMostBeside); ++i) v.evidence.push_back(all[i].sentence);
  }
  const double growth = evidence.growth();
  if (!(growth > 0) || explained >= kExplained * growth) return;
  Verdict verdict;
  verdict.cause = "environment_changed";
  verdict.detail = all.front().detail;
  verdict.scope = model::VerdictScope::process;
  verdict.side = evidence.side();
  verdict.state = VerdictState::active;
  verdict.confidence = 0.5;
  verdict.impact_ns = growth - explained;
  for (std::size_t i = 0; i < std::min(all.size(), kMostFacts); ++i) verdict.evidence.push_back(all[i].sentence);
  if (all.size() > kMostFacts)
    verdict.evidence.push_back(fmt::format("{} more of its settings and versions differ", all.size() - kMostFacts));
  verdict.against.emplace_back("Only that they differ was seen, and that nothing else explains it");
  verdict.next_step = "set it back on one side and compare again (culprit ab)";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kRules = {Rule{"settings.differ", differ}};

}  // namespace

std::span<const Rule> settings_rules() { return kRules; }

}  // namespace culprit::diagnose
