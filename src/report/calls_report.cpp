#include "report/calls_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace culprit::report {

namespace {

using model::CallsChange;
using model::RunComparison;

constexpr double kLeast = 0.01;  // of a step
constexpr double kPercent = 100;

std::string functions_text(const CallsChange& change) {
  if (change.fewer == 0) return fmt::format("{} of {} functions are called more often", change.more, change.functions);
  if (change.more == 0) return fmt::format("{} of {} functions are called less often", change.fewer, change.functions);
  return fmt::format("{} of {} functions are called more often and {} less often", change.more, change.functions,
                     change.fewer);
}

std::string line_of(const RunComparison& comparison, const CallsChange& change) {
  const model::FunctionFinding& f = comparison.functions[change.example];
  return fmt::format(
      "Calls per step ({}): {}, {} {:g} times instead of {:g}: at the same speed that makes {:+.1f} % of a step",
      phase_name(change.phase), functions_text(change), comparison.texts[f.short_name], f.steady_calls[1],
      f.steady_calls[0], change.change * kPercent);
}

}  // namespace

std::vector<std::string> calls_lines(const RunComparison& comparison) {
  // Then it has been said.
  if (std::ranges::any_of(comparison.verdicts, [](const model::Verdict& v) { return v.detail == "calls"; })) return {};
  std::map<model::Phase, const CallsChange*> most;
  for (const CallsChange& change : comparison.calls) {
    if (!(std::abs(change.change) >= kLeast)) continue;
    const CallsChange*& of_phase = most[change.phase];
    if (of_phase == nullptr || std::abs(change.change) > std::abs(of_phase->change)) of_phase = &change;
  }
  std::vector<std::string> lines;
  lines.reserve(most.size());
  for (const auto& [phase, change] : most) lines.push_back(line_of(comparison, *change));
  return lines;
}

void write_calls(JsonWriter& json, const RunComparison& comparison) {
  json.begin_array("calls_per_step");
  for (const CallsChange& change : comparison.calls) {
    const model::ProcessPair& pair = comparison.processes[change.process];
    const model::FunctionFinding& example = comparison.functions[change.example];
    json.begin_object(JsonForm::line);
    json.member("phase", phase_name(change.phase));
    json.member("rank", pair.rank);
    json.member("pid", pair.pid);
    json.member("device", comparison.texts[change.device]);
    json.member("functions", change.functions);
    json.member("more", change.more);
    json.member("fewer", change.fewer);
    json.member("example", comparison.texts[example.function]);
    json.member("example_calls", example.steady_calls);
    json.member("moved_ns", change.moved_ns);
    json.member("of_both_ns", change.of_both_ns);
    json.member("speed", change.speed);
    json.member("change", change.change);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::report
