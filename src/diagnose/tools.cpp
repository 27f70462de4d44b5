// Profilers, tracers and debuggers that ran beside one side only: what they look at they make slower, in its own time.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

struct Tools {
  std::set<std::string> tracers;  ///< of its processes
  std::set<std::string> beside;   ///< that ran, and do not need to trace what they look at
  bool known = false;             ///< what ran beside it
};

/// Samplers that stop what they look at, for moments in which nobody sees them trace it.
bool stops(const std::string& name) { return name == "py-spy" || name == "austin" || name == "rbspy"; }

/// Debuggers that trace nothing of the program look at something else.
bool has_to_trace(std::string_view name) {
  constexpr std::array<std::string_view, 5> kTrace = {"strace", "ltrace", "gdb", "lldb", "rr"};
  return std::ranges::find(kTrace, name) != kTrace.end();
}

Tools tools_of(const model::RunComparison& comparison, std::size_t side) {
  constexpr std::string_view kBetween = " / ";
  Tools tools;
  for (const model::EnvironmentChange& fact : comparison.environment) {
    const std::string_view key = fact.key;
    const bool traced = key.starts_with("env.target") && key.ends_with(".traced_by");
    if (!traced && key != "env.profilers") continue;
    std::string_view rest = fact.value[side];
    tools.known = tools.known || (!traced && !rest.empty());
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(kBetween), rest.size());
      const std::string name(rest.substr(0, end));
      rest.remove_prefix(std::min(rest.size(), end + kBetween.size()));
      if (traced)
        tools.tracers.insert(name);
      else if (name != "none" && !has_to_trace(name))
        tools.beside.insert(name);
    }
  }
  return tools;
}

/// Those of this side alone. A recording that does not tell who ran beside it is no side without them.
Tools tools_of(const Evidence& evidence) {
  Tools tools = tools_of(evidence.comparison(), evidence.side());
  const Tools others = tools_of(evidence.comparison(), 1 - evidence.side());
  std::erase_if(tools.tracers, [&](const std::string& name) { return others.tracers.contains(name); });
  std::erase_if(tools.beside, [&](const std::string& name) {
    return !others.known || others.beside.contains(name) || tools.tracers.contains(name);
  });
  return tools;
}

void profiled(const Evidence& evidence, Verdicts& verdicts) {
  const Tools tools = tools_of(evidence);
  const auto step = evidence.step();
  if ((tools.tracers.empty() && tools.beside.empty()) || !step || evidence.slowdown() < kLeastImpact) return;
  const Sides stopped =
      evidence.states([](std::string_view state) { return state == "stopped" || state == "blocked in stopped"; });
  const double on_cpu = std::max(0.0, step->on_cpu.rise());
  const bool traced = !tools.tracers.empty();
  const std::string name = traced ? *tools.tracers.begin() : *tools.beside.begin();
  const bool is_stopped = traced || stops(name);
  const double held = is_stopped ? evidence.felt(std::max(0.0, stopped.rise())) : 0;
  if (on_cpu + held < kLeastImpact * step->all().without) return;
  Verdict verdict;
  verdict.cause = "profiler_overhead";
  verdict.side = evidence.side();
  verdict.scope = model::VerdictScope::process;
  verdict.where = name;
  if (is_stopped) verdict.detail = "traced";
  verdict.confidence = traced ? 0.9 : 0.7;
  // Who traces it makes it wait for its turn as well: each call ends in its process, and begins there again.
  verdict.impact_ns = on_cpu + held + (traced ? std::max(0.0, step->runnable.rise()) : 0);
  verdict.work_ratio = step->on_cpu.ratio();
  for (const std::string& tracer : tools.tracers)
    verdict.evidence.push_back(fmt::format(
        "{} traces it: {}", tracer,
        stops(tracer) ? "it stands still for each sample" : "each call into the kernel may stop twice for it"));
  for (const std::string& tool : tools.beside)
    verdict.evidence.push_back(fmt::format("{} ran meanwhile, and not on the other side", tool));
  if (on_cpu > 0)
    verdict.evidence.push_back(fmt::format("Its threads took {} on CPUs", instead_each(evidence, step->on_cpu)));
  if (held > 0)
    verdict.evidence.push_back(fmt::format("Its threads stood still for {}", instead_each(evidence, stopped)));
  if (!traced) verdict.against.emplace_back("How much of that it took nobody counted: it may have looked at others");
  verdict.next_step = "end it, and record again; culprit record beside the program takes less";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kToolRules = {Rule{"tools.profiled", profiled}};

}  // namespace

std::span<const Rule> tool_rules() { return kToolRules; }

}  // namespace culprit::diagnose
