#include "ab/recorded_steps.h"

#include <culprit/load.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "compare/cycle_time.h"
#include "cycles/find.h"
#include "library/run_data.h"
#include "profile/recording.h"

namespace culprit::ab {

namespace {

constexpr std::string_view kOnCpu = "oncpu";  // slices of the scheduling of a thread

/// The step in which a moment lies, or null.
Step* step_at(std::vector<Step>& steps, Ns at) {
  const auto after = std::ranges::upper_bound(steps, at, {}, &Step::begin);
  if (after == steps.begin()) return nullptr;
  Step& step = *std::prev(after);
  return at < step.end ? &step : nullptr;
}

/// What all recorded threads ran inside of each step.
void measure_cpu(const Trace& trace, std::vector<Step>& steps) {
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched || trace.name(slice) != kOnCpu) continue;
    const Ns begin = slice.begin + trace.base_ns;
    const Ns end = slice.end() + trace.base_ns;
    auto step = std::ranges::upper_bound(steps, begin, {}, &Step::begin);
    if (step != steps.begin()) --step;
    for (; step != steps.end() && step->begin < end; ++step)
      step->value += static_cast<double>(std::max<Ns>(0, std::min(end, step->end) - std::max(begin, step->begin)));
  }
}

/// Slices whose name matches, each in the step in which it begins.
void measure_functions(const Trace& trace, const Quantity& quantity, std::vector<Step>& steps) {
  std::map<StringId, bool> known;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const auto [match, is_new] = known.try_emplace(slice.name, false);
    if (is_new) match->second = fnmatch(quantity.pattern.c_str(), std::string(trace.name(slice)).c_str(), 0) == 0;
    if (!match->second) continue;
    if (Step* step = step_at(steps, slice.begin + trace.base_ns))
      step->value += quantity.kind == Quantity::Kind::calls ? 1 : static_cast<double>(slice.duration);
  }
}

void measure(const Trace& trace, const Quantity& quantity, std::vector<Step>& steps) {
  using enum Quantity::Kind;
  if (quantity.kind != cpu && quantity.kind != function && quantity.kind != calls) return;
  for (Step& step : steps) step.value = 0;
  if (quantity.kind == cpu)
    measure_cpu(trace, steps);
  else
    measure_functions(trace, quantity, steps);
  std::erase_if(steps, [](const Step& step) { return step.value <= 0; });
}

/// Wake-ups of the one thread that works, where each is a unit: one that handles several at once would do more of them
/// the slower it is. A unit that is so much time, or a process, says nothing of how fast it is.
void add_units(const Trace& trace, const cycles::Found& found, StepsOf& result) {
  constexpr double kNearlyOne = 1.25;
  using enum model::UnitKind;
  if (!found.work || found.work->units.empty() || found.work->starts.empty()) return;
  const model::WorkUnit& unit = found.work->units.front();
  if (unit.kind == window || unit.kind == process || unit.kind == cpu_time) return;
  const double each = static_cast<double>(unit.count) / static_cast<double>(found.work->starts.size());
  if (each > kNearlyOne || each < 1 / kNearlyOne) {
    result.how += fmt::format("; {:.2g} of them in each wake-up", each);
    return;
  }
  result.wait = unit.receive;
  result.unit = fmt::format("{} ({} to {})", model::plural(unit), unit.receive, unit.send);
  for (const Ns start : found.work->starts) result.units.push_back(start + trace.base_ns);
}

/// Python functions that were asked for, and that could not be watched, may be why there are no steps.
std::string unwatched(const Trace& trace) {
  for (const Rank& rank : trace.ranks)
    for (const auto& [key, value] : rank.metadata)
      if (key.starts_with("missing.python")) return "; Python functions are missing: " + value;
  return {};
}

}  // namespace

Result<StepsOf> steps_of(const std::string& file, const Quantity& quantity) {
  const auto run = load_run({file});
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  const auto found = cycles::find_cycles(trace, order_slices(trace), {});
  if (!found) return found.error();
  StepsOf result;
  result.how = found->cycles.reason;
  const bool sure = found->cycles.period_confidence >= kLeastConfidence;
  if (!model::are_steps(found->cycles.method) || !sure) {
    add_units(trace, *found, result);
    result.how += unwatched(trace);
    return result;
  }
  for (const compare::StepTime& step : compare::step_times(found->cycles))
    result.steps.push_back({step.begin + trace.base_ns, step.begin + static_cast<Ns>(step.period) + trace.base_ns,
                            step.phase, step.work, step.time});
  std::ranges::sort(result.steps, {}, &Step::begin);
  measure(trace, quantity, result.steps);
  return result;
}

Result<model::Recording> recording_of(const std::string& file, const std::vector<Span>& turns) {
  const auto run = load_run({file});
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  profile::RecordingOptions options;
  for (const Span& turn : turns) options.within.push_back({turn.begin - trace.base_ns, turn.end - trace.base_ns});
  auto recording = profile::recording_of(trace, {file}, options);
  if (!recording) return recording.error();
  recording->facts.programs.clear();
  if (!turns.empty()) recording->host.requests.clear();  // they wait while their server stands still
  return recording;
}

}  // namespace culprit::ab
