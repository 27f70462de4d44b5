#include "report/calls_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/units.h"

namespace culprit::report {

namespace {

using model::CallsChange;
using model::RunComparison;

constexpr double kLeast = 0.01;  // of a step

std::string functions_text(const CallsChange& change) {
  std::vector<std::string> parts;
  if (change.more > 0) parts.push_back(fmt::format("{} called more often", change.more));
  if (change.fewer > 0) parts.push_back(fmt::format("{} called less often", change.fewer));
  if (change.added > 0) parts.push_back(fmt::format("{} new", change.added));
  if (change.gone > 0) parts.push_back(fmt::format("{} gone", change.gone));
  return fmt::format("of {} functions {}", change.functions, fmt::join(parts, ", "));
}

std::string line_of(const RunComparison& comparison, const CallsChange& change) {
  const bool beside_device = change.device < 0 && std::ranges::any_of(comparison.calls, [&](const CallsChange& other) {
                               return other.phase == change.phase && other.device >= 0;
                             });
  std::string line = fmt::format("Calls per step ({}{}): {}", phase_name(change.phase), beside_device ? ", host" : "",
                                 functions_text(change));
  const std::size_t side = change.change > 0 ? 1 : 0;
  if ((side == 1 ? change.more : change.fewer) > 0) {
    const model::FunctionFinding& f = comparison.functions[change.example[side]];
    line += fmt::format(" ({} {:g} times instead of {:g})", comparison.texts[f.short_name], f.steady_calls[1],
                        f.steady_calls[0]);
  }
  line += fmt::format(": at the same speed that makes {:+.1f} % of a step", change.change * kPercent);
  if (std::abs(change.change_with_between - change.change) >= kLeast)
    line +=
        fmt::format(", {:+.1f} % if what lies between functions goes with them", change.change_with_between * kPercent);
  return line;
}

}  // namespace

std::vector<std::string> calls_lines(const RunComparison& comparison) {
  // Then it has been said.
  if (std::ranges::any_of(comparison.verdicts, [](const model::Verdict& v) { return v.detail == "calls"; })) return {};
  std::vector<std::string> lines;
  for (const CallsChange& change : comparison.calls)
    if (std::abs(change.change) >= kLeast) lines.push_back(line_of(comparison, change));
  return lines;
}

void write_calls(JsonWriter& json, const RunComparison& comparison) {
  json.begin_array("calls_per_step");
  for (const CallsChange& change : comparison.calls) {
    json.begin_object(JsonForm::line);
    json.member("phase", phase_name(change.phase));
    json.member("device", change.device);
    json.member("functions", change.functions);
    json.member("more", change.more);
    json.member("fewer", change.fewer);
    json.member("new", change.added);
    json.member("gone", change.gone);
    json.member("moved_ns", change.moved_ns);
    json.member("of_both_ns", change.of_both_ns);
    json.member("speed", change.speed);
    json.member("change", change.change);
    json.member("change_with_between", change.change_with_between);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::report
